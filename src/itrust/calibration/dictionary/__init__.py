"""Dictionaries: the checks that an adaptive test makes, built without labels."""

from itrust.calibration.dictionary.bank import (
    FEW_EVENTS,
    RIDGE,
    Bank,
    BankSums,
    Directions,
    make_bank,
    make_directions,
)
from itrust.calibration.dictionary.default import (
    contrast_entries,
    default_dictionary_for,
    direction_dictionary,
)
from itrust.calibration.dictionary.entries import Dictionary, Entry, Scaling
from itrust.terms import Shape
