"""Rows: what users bring becomes a `Sample`, a `Scan` or a `Population`, once."""

from itrust.data.column import MISSING_LEVEL, Column, Points, called_impossible, share_codes
from itrust.data.copying import (
    FileCopy,
    FormulaCells,
    formula_cells,
    prepare_copy,
    refuse_formula_names,
)
from itrust.data.design import (
    Design,
    Replication,
    design_variance,
    linear_moves,
    read_weights,
    variance_units,
)
from itrust.data.encoding import (
    MAX_TEXT_LEVELS,
    Kinds,
    encode,
    encode_numbers,
    frame_columns,
    is_frame,
    names_of_frame,
    same_length,
)
from itrust.data.estimators import Classifier, Covariates, is_model
from itrust.data.file_set import FileSet, belonging_to
from itrust.data.files import (
    FileRows,
    MulticlassPopulationScan,
    MulticlassScan,
    PopulationScan,
    Scan,
    Source,
    clusters_in_files,
    scan,
)
from itrust.data.formats import (
    AS_SEEN,
    FORMATS,
    GZIP,
    HEAD_BYTES,
    Delimited,
    FilePart,
    TextForm,
    format_of_bytes,
    in_bytes,
    known_format,
    refused,
    split_table,
    unreadable,
)
from itrust.data.grammar import (
    MAX_CHARACTERS,
    TOKEN,
    ConditionReader,
    Token,
    parse_condition,
    shown_part,
)
from itrust.data.intake import (
    MissingRule,
    Roles,
    column_names_known,
    columns_named,
    read_covariates,
    refuse_among_covariates,
    same_index,
    settled_columns,
)
from itrust.data.oddities import (
    MAX_VALUES,
    WITHOUT_IT,
    covariate_notes,
    is_few,
    is_index,
    is_prediction,
)
from itrust.data.predicates import (
    CUT_LEVELS,
    OTHER_NAME,
    PREDICTION,
    RESERVED,
    And,
    Between,
    Compared,
    Everywhere,
    Level,
    Missing,
    Not,
    OneOf,
    Or,
    Predicate,
    all_of,
    as_predicate,
    column_of,
    cut_of,
    date_text,
    in_backticks,
    level_of,
    parts_of,
    position_of,
    quoted,
    value_of,
    written,
)
from itrust.data.probabilities import (
    ALL_CLASSES,
    SUM_TOLERANCE,
    class_columns,
    class_position,
    label_values,
    names_several,
    positive_column,
    read_labels,
    read_probabilities,
)
from itrust.data.rows import Rows
from itrust.data.sample import (
    MulticlassPopulation,
    MulticlassSample,
    Population,
    Sample,
    a_kind,
    checked_sample,
    of_one_column,
    of_two_classes,
    without_labels,
)
from itrust.data.selection import SelectionCounts, without_codes
from itrust.data.survey import (
    COUNTED_LEVELS,
    DESIGN_ROWS,
    Census,
    ChosenRows,
    Extract,
    Pilot,
    rows_at_hand,
)
from itrust.data.units import (
    AUTO,
    block_length,
    blocks,
    column_named,
    may_be_units,
    read_times,
    replicate_columns,
    unit_columns,
)

__all__ = [
    "Design",
    "MulticlassPopulation",
    "MulticlassPopulationScan",
    "MulticlassSample",
    "MulticlassScan",
    "Population",
    "PopulationScan",
    "Predicate",
    "Sample",
    "Scan",
    "block_length",
    "blocks",
    "scan",
]
__dir__ = __all__.copy  # what tab completion offers
