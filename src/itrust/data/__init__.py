"""Rows: what users bring becomes a `Sample`, a `Scan` or a `Population`, once."""

from itrust.data.column import Column, share_codes
from itrust.data.design_matrix import Table
from itrust.data.files import Candidates, Scan, scan
from itrust.data.formats import FORMATS, FilePart, format_of, guess_column, known_format
from itrust.data.intake import (
    MissingRule,
    frame_columns,
    named_columns,
    read_covariates,
    read_probabilities,
    same_length,
)
from itrust.data.multiclass import MulticlassSample
from itrust.data.population import Population
from itrust.data.predicates.algebra import And, Everywhere, Not, Or, Predicate, all_of
from itrust.data.predicates.grammar import RESERVED, WrittenNumber, in_backticks, quoted
from itrust.data.predicates.leaves import (
    OPERATORS,
    Between,
    Compared,
    Level,
    Missing,
    OneOf,
    as_predicate,
)
from itrust.data.predicates.lookup import OTHER_NAME, PREDICTION, column_of, value_of
from itrust.data.predicates.parts import level_of, parts_of, regions_of
from itrust.data.readers import (
    column_names,
    is_text,
    line_of,
    list_files,
    partition_keys,
    read_table,
    read_untouched,
    row_of,
    spool,
)
from itrust.data.rows import Chunk, Points, called_impossible
from itrust.data.sample import Sample, checked_sample
from itrust.data.source import Pilot, Source

__all__ = [
    "FORMATS",
    "OPERATORS",
    "OTHER_NAME",
    "PREDICTION",
    "RESERVED",
    "And",
    "Between",
    "Candidates",
    "Chunk",
    "Column",
    "Compared",
    "Everywhere",
    "FilePart",
    "Level",
    "Missing",
    "MissingRule",
    "MulticlassSample",
    "Not",
    "OneOf",
    "Or",
    "Pilot",
    "Points",
    "Population",
    "Predicate",
    "Sample",
    "Scan",
    "Source",
    "Table",
    "WrittenNumber",
    "all_of",
    "as_predicate",
    "called_impossible",
    "checked_sample",
    "column_names",
    "column_of",
    "format_of",
    "frame_columns",
    "guess_column",
    "in_backticks",
    "is_text",
    "known_format",
    "level_of",
    "line_of",
    "list_files",
    "named_columns",
    "partition_keys",
    "parts_of",
    "quoted",
    "read_covariates",
    "read_probabilities",
    "read_table",
    "read_untouched",
    "regions_of",
    "row_of",
    "same_length",
    "scan",
    "share_codes",
    "spool",
    "value_of",
]
