"""Rows: what users bring becomes a `Sample`, a `Scan` or a `Population`, once."""

from itrust.data.class_intake import SUM_TOLERANCE as SUM_TOLERANCE
from itrust.data.class_intake import class_columns as class_columns
from itrust.data.class_intake import class_position as class_position
from itrust.data.class_intake import names_several as names_several
from itrust.data.column import MISSING_LEVEL as MISSING_LEVEL
from itrust.data.column import Column as Column
from itrust.data.column import share_codes as share_codes
from itrust.data.copying import FileCopy as FileCopy
from itrust.data.copying import FormulaCells as FormulaCells
from itrust.data.copying import formula_cells as formula_cells
from itrust.data.copying import prepare_copy as prepare_copy
from itrust.data.copying import refuse_formula_names as refuse_formula_names
from itrust.data.design import Design
from itrust.data.design import Replication as Replication
from itrust.data.design import design_variance as design_variance
from itrust.data.design import linear_moves as linear_moves
from itrust.data.design import variance_units as variance_units
from itrust.data.design_intake import read_weights as read_weights
from itrust.data.encoding import MAX_TEXT_LEVELS as MAX_TEXT_LEVELS
from itrust.data.encoding import encode as encode
from itrust.data.encoding import encode_numbers as encode_numbers
from itrust.data.encoding import frame_columns as frame_columns
from itrust.data.encoding import is_frame as is_frame
from itrust.data.encoding import names_of_frame as names_of_frame
from itrust.data.encoding import same_length as same_length
from itrust.data.estimators import Classifier as Classifier
from itrust.data.estimators import Covariates as Covariates
from itrust.data.estimators import is_model as is_model
from itrust.data.extract import DESIGN_ROWS as DESIGN_ROWS
from itrust.data.extract import Census as Census
from itrust.data.extract import Extract as Extract
from itrust.data.extract import ValueCounts as ValueCounts
from itrust.data.extract import rows_at_hand as rows_at_hand
from itrust.data.file_set import FileSet as FileSet
from itrust.data.files import Harvest as Harvest
from itrust.data.files import Scan, scan
from itrust.data.files import clusters_in_files as clusters_in_files
from itrust.data.formats import AS_SEEN as AS_SEEN
from itrust.data.formats import FORMATS as FORMATS
from itrust.data.formats import Delimited as Delimited
from itrust.data.formats import FilePart as FilePart
from itrust.data.formats import TextForm as TextForm
from itrust.data.formats import about_unpacked as about_unpacked
from itrust.data.formats import format_of as format_of
from itrust.data.formats import known_format as known_format
from itrust.data.formats import split_table as split_table
from itrust.data.grammar import MAX_CHARACTERS as MAX_CHARACTERS
from itrust.data.grammar import TOKEN as TOKEN
from itrust.data.grammar import ConditionReader as ConditionReader
from itrust.data.grammar import Token as Token
from itrust.data.grammar import parse_condition as parse_condition
from itrust.data.grammar import shown_part as shown_part
from itrust.data.intake import ALL_CLASSES as ALL_CLASSES
from itrust.data.intake import WEIGHTS as WEIGHTS
from itrust.data.intake import MissingRule as MissingRule
from itrust.data.intake import column_names_known as column_names_known
from itrust.data.intake import label_values as label_values
from itrust.data.intake import named_columns as named_columns
from itrust.data.intake import read_covariates as read_covariates
from itrust.data.intake import read_labels as read_labels
from itrust.data.intake import read_probabilities as read_probabilities
from itrust.data.intake import refuse_among_covariates as refuse_among_covariates
from itrust.data.intake import same_index as same_index
from itrust.data.intake import settle_missing as settle_missing
from itrust.data.kinds import Kinds as Kinds
from itrust.data.locations import belonging_to as belonging_to
from itrust.data.locations import max_input as max_input
from itrust.data.locations import spool as spool
from itrust.data.multiclass import MulticlassSample
from itrust.data.multiclass_chunks import FACT_ROWS as FACT_ROWS
from itrust.data.multiclass_chunks import ClassChunk as ClassChunk
from itrust.data.multiclass_chunks import ClassFacts as ClassFacts
from itrust.data.multiclass_files import ClassHarvest as ClassHarvest
from itrust.data.multiclass_files import ClassSurvey as ClassSurvey
from itrust.data.multiclass_files import MulticlassPopulationScan, MulticlassScan
from itrust.data.multiclass_population import MulticlassPopulation
from itrust.data.oddities import MAX_VALUES as MAX_VALUES
from itrust.data.oddities import WITHOUT_IT as WITHOUT_IT
from itrust.data.oddities import covariate_notes as covariate_notes
from itrust.data.oddities import is_few as is_few
from itrust.data.oddities import is_index as is_index
from itrust.data.oddities import is_prediction as is_prediction
from itrust.data.population import Population
from itrust.data.population import of_one_column as of_one_column
from itrust.data.population import without_labels as without_labels
from itrust.data.population_files import PopulationScan
from itrust.data.population_files import RowsAtHand as RowsAtHand
from itrust.data.population_files import without_label as without_label
from itrust.data.predicates import OPERATORS as OPERATORS
from itrust.data.predicates import OTHER_NAME as OTHER_NAME
from itrust.data.predicates import PREDICTION as PREDICTION
from itrust.data.predicates import RESERVED as RESERVED
from itrust.data.predicates import And as And
from itrust.data.predicates import Between as Between
from itrust.data.predicates import Compared as Compared
from itrust.data.predicates import Everywhere as Everywhere
from itrust.data.predicates import Level as Level
from itrust.data.predicates import Missing as Missing
from itrust.data.predicates import Not as Not
from itrust.data.predicates import OneOf as OneOf
from itrust.data.predicates import Or as Or
from itrust.data.predicates import Predicate
from itrust.data.predicates import WrittenNumber as WrittenNumber
from itrust.data.predicates import all_of as all_of
from itrust.data.predicates import as_predicate as as_predicate
from itrust.data.predicates import column_of as column_of
from itrust.data.predicates import cut_of as cut_of
from itrust.data.predicates import date_text as date_text
from itrust.data.predicates import in_backticks as in_backticks
from itrust.data.predicates import level_of as level_of
from itrust.data.predicates import parts_of as parts_of
from itrust.data.predicates import position_of as position_of
from itrust.data.predicates import quoted as quoted
from itrust.data.predicates import value_of as value_of
from itrust.data.predicates import written as written
from itrust.data.rows import Chunk as Chunk
from itrust.data.rows import Points as Points
from itrust.data.rows import called_impossible as called_impossible
from itrust.data.sample import Sample
from itrust.data.sample import a_kind as a_kind
from itrust.data.sample import checked_sample as checked_sample
from itrust.data.sample import of_two_classes as of_two_classes
from itrust.data.selection import SelectionCounts as SelectionCounts
from itrust.data.selection import without_codes as without_codes
from itrust.data.source import Candidates as Candidates
from itrust.data.source import Pilot as Pilot
from itrust.data.source import Source as Source
from itrust.data.units import AUTO as AUTO
from itrust.data.units import UnitColumn as UnitColumn
from itrust.data.units import Units as Units
from itrust.data.units import block_length, blocks
from itrust.data.units import column_named as column_named
from itrust.data.units import may_be_units as may_be_units
from itrust.data.units import read_times as read_times
from itrust.data.units import replicate_columns as replicate_columns
from itrust.data.units import split_units as split_units
from itrust.data.units import unit_columns as unit_columns

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
