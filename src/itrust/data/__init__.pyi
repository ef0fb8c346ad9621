from itrust.data.column import MAX_VALUES as MAX_VALUES
from itrust.data.column import MISSING_LEVEL as MISSING_LEVEL
from itrust.data.column import WITHOUT_IT as WITHOUT_IT
from itrust.data.column import Column as Column
from itrust.data.column import Points as Points
from itrust.data.column import called_impossible as called_impossible
from itrust.data.column import covariate_notes as covariate_notes
from itrust.data.column import is_few as is_few
from itrust.data.column import is_index as is_index
from itrust.data.column import is_prediction as is_prediction
from itrust.data.column import share_codes as share_codes
from itrust.data.copying import FileCopy as FileCopy
from itrust.data.copying import prepare_copy as prepare_copy
from itrust.data.design import Design as Design
from itrust.data.design import Replication as Replication
from itrust.data.design import design_variance as design_variance
from itrust.data.design import linear_moves as linear_moves
from itrust.data.design import read_weights as read_weights
from itrust.data.design import variance_units as variance_units
from itrust.data.disclosure import LABELS as LABELS
from itrust.data.disclosure import PREDICTIONS as PREDICTIONS
from itrust.data.disclosure import Cell as Cell
from itrust.data.disclosure import CellKeys as CellKeys
from itrust.data.disclosure import Words as Words
from itrust.data.disclosure import digest_of as digest_of
from itrust.data.disclosure import row_words as row_words
from itrust.data.disclosure import same_side as same_side
from itrust.data.disclosure import short as short
from itrust.data.disclosure import short_pvalue as short_pvalue
from itrust.data.encoding import MAX_TEXT_LEVELS as MAX_TEXT_LEVELS
from itrust.data.encoding import Kinds as Kinds
from itrust.data.encoding import encode as encode
from itrust.data.encoding import encode_numbers as encode_numbers
from itrust.data.encoding import frame_columns as frame_columns
from itrust.data.encoding import is_frame as is_frame
from itrust.data.encoding import names_of_frame as names_of_frame
from itrust.data.encoding import same_length as same_length
from itrust.data.estimators import Classifier as Classifier
from itrust.data.estimators import Covariates as Covariates
from itrust.data.estimators import is_model as is_model
from itrust.data.file_set import FileSet as FileSet
from itrust.data.file_set import belonging_to as belonging_to
from itrust.data.files import FileRows as FileRows
from itrust.data.files import MulticlassPopulationScan as MulticlassPopulationScan
from itrust.data.files import MulticlassScan as MulticlassScan
from itrust.data.files import PopulationScan as PopulationScan
from itrust.data.files import Scan as Scan
from itrust.data.files import Source as Source
from itrust.data.files import clusters_in_files as clusters_in_files
from itrust.data.files import scan as scan
from itrust.data.formats import AS_SEEN as AS_SEEN
from itrust.data.formats import FORMATS as FORMATS
from itrust.data.formats import GZIP as GZIP
from itrust.data.formats import HEAD_BYTES as HEAD_BYTES
from itrust.data.formats import Delimited as Delimited
from itrust.data.formats import FilePart as FilePart
from itrust.data.formats import TextForm as TextForm
from itrust.data.formats import format_of_bytes as format_of_bytes
from itrust.data.formats import in_bytes as in_bytes
from itrust.data.formats import known_format as known_format
from itrust.data.formats import refused as refused
from itrust.data.formats import split_table as split_table
from itrust.data.formats import unreadable as unreadable
from itrust.data.grammar import MAX_CHARACTERS as MAX_CHARACTERS
from itrust.data.grammar import TOKEN as TOKEN
from itrust.data.grammar import ConditionReader as ConditionReader
from itrust.data.grammar import Token as Token
from itrust.data.grammar import parse_condition as parse_condition
from itrust.data.grammar import shown_part as shown_part
from itrust.data.intake import MissingRule as MissingRule
from itrust.data.intake import Roles as Roles
from itrust.data.intake import column_names_known as column_names_known
from itrust.data.intake import columns_named as columns_named
from itrust.data.intake import read_covariates as read_covariates
from itrust.data.intake import refuse_among_covariates as refuse_among_covariates
from itrust.data.intake import same_index as same_index
from itrust.data.intake import settled_columns as settled_columns
from itrust.data.predicates import CUT_LEVELS as CUT_LEVELS
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
from itrust.data.predicates import Predicate as Predicate
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
from itrust.data.probabilities import class_columns as class_columns
from itrust.data.probabilities import class_position as class_position
from itrust.data.probabilities import label_values as label_values
from itrust.data.probabilities import names_several as names_several
from itrust.data.probabilities import positive_column as positive_column
from itrust.data.probabilities import read_labels as read_labels
from itrust.data.probabilities import read_probabilities as read_probabilities
from itrust.data.rows import Rows as Rows
from itrust.data.sample import MulticlassPopulation as MulticlassPopulation
from itrust.data.sample import MulticlassSample as MulticlassSample
from itrust.data.sample import Population as Population
from itrust.data.sample import Sample as Sample
from itrust.data.sample import a_kind as a_kind
from itrust.data.sample import checked_sample as checked_sample
from itrust.data.sample import of_one_column as of_one_column
from itrust.data.sample import of_two_classes as of_two_classes
from itrust.data.sample import without_labels as without_labels
from itrust.data.selection import SelectionCounts as SelectionCounts
from itrust.data.selection import without_codes as without_codes
from itrust.data.survey import COUNTED_LEVELS as COUNTED_LEVELS
from itrust.data.survey import DESIGN_ROWS as DESIGN_ROWS
from itrust.data.survey import Census as Census
from itrust.data.survey import ChosenRows as ChosenRows
from itrust.data.survey import Extract as Extract
from itrust.data.survey import Pilot as Pilot
from itrust.data.survey import rows_at_hand as rows_at_hand
from itrust.data.units import AUTO as AUTO
from itrust.data.units import block_length as block_length
from itrust.data.units import blocks as blocks
from itrust.data.units import may_be_units as may_be_units
from itrust.data.units import read_times as read_times
from itrust.data.units import replicate_columns as replicate_columns
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
