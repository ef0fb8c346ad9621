"""What once did harm does none, and neither do some fresh inputs of every target."""

import pytest

from fuzz.kit import CORPUS, fuzz
from fuzz.run import known_targets

TARGETS = known_targets()
HELD = [(name, path) for name, target in TARGETS.items() for path in target.corpus]


@pytest.mark.parametrize(("name", "path"), HELD, ids=lambda value: getattr(value, "name", value))
def test_what_once_did_harm_is_refused_or_read(name, path, tmp_path):
    outcome, said = TARGETS[name].outcome(path.read_bytes(), tmp_path)
    assert outcome.is_right, said


def test_every_folder_of_the_corpus_belongs_to_a_target():
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} <= set(TARGETS)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if target.fresh])
def test_fresh_inputs_are_refused_or_read(name):
    tally = fuzz(name, seed=1, first=0, count=TARGETS[name].fresh, seconds=600)
    assert not tally.failures, tally
    assert tally.outcomes.total() == TARGETS[name].fresh
