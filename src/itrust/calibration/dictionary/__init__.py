"""Dictionaries: the checks that an adaptive test makes, built without labels."""

from itrust.calibration.dictionary.default import default_dictionary_for
from itrust.calibration.dictionary.entries import Dictionary, Entry, Shape
from itrust.calibration.dictionary.where import EVERYWHERE, Predicate

__all__ = [
    "EVERYWHERE",
    "Dictionary",
    "Entry",
    "Predicate",
    "Shape",
    "default_dictionary_for",
]
