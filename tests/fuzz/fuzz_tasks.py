"""Texts of tasks."""

import random

from fuzz.kit import Target, flipped_bytes
from itrust.tasks import parse

SOUND = (
    'mean(age | race == "Black") - mean(age | race == "White")',
    "share(age >= 65)",
    'prevalence(region in ("south", "west") and age < 40) / prevalence()',
    "Mean age of owners: mean(age) ~ 0.5",
    "mean(10 ** log_income + sqrt(abs(x)) | not (a is missing or `b c` != 3))",
)


def texts(_folder):
    return [text.encode() for text in SOUND]


def damaged(rng: random.Random, sound: bytes) -> bytes:
    return flipped_bytes(rng, sound)


def read(given: bytes, _folder) -> None:
    parse(given.decode("utf-8", "replace"))


TARGETS = [Target("tasks", texts, damaged, read)]
