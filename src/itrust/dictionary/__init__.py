"""Dictionaries: the places that an adaptive test looks at, built without labels."""

from itrust.dictionary.default import default_dictionary_for
from itrust.dictionary.entries import Dictionary, Entry

__all__ = ["Dictionary", "Entry", "default_dictionary_for"]
