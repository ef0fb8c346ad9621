"""Dictionaries: the checks that an adaptive test makes, built without labels."""

from itrust.calibration.dictionary.default import default_dictionary_for
from itrust.calibration.dictionary.entries import Dictionary, Entry, Shape

__all__ = [
    "Dictionary",
    "Entry",
    "Shape",
    "default_dictionary_for",
]
