"""Which rows: one family of predicates on covariates, for groups, slices, checks and tasks."""

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

__all__ = [
    "OPERATORS",
    "OTHER_NAME",
    "PREDICTION",
    "RESERVED",
    "And",
    "Between",
    "Compared",
    "Everywhere",
    "Level",
    "Missing",
    "Not",
    "OneOf",
    "Or",
    "Predicate",
    "WrittenNumber",
    "all_of",
    "as_predicate",
    "column_of",
    "in_backticks",
    "level_of",
    "parts_of",
    "quoted",
    "regions_of",
    "value_of",
]
