import numpy as np
import pytest

import itrust as it
from itrust._core import progress
from itrust.auditing.stages import audit_steps
from itrust.render import step_words
from shell import invoke


@pytest.fixture(scope="module")
def town():
    return it.simulate.survey(200, rng=0).sample


def said(capsys):
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def headings(sample, tasks, charts, robustness=True):
    steps = audit_steps(sample, sample.names, 79, tasks, charts, robustness)
    return [
        f"itrust: {number} of {len(steps)}: {step_words(step, sample.names)}"
        for number, step in enumerate(steps, 1)
    ]


def test_every_stage_has_words():
    by_class = it.MulticlassSample([0, 1, 2], np.full((3, 3), 1 / 3))
    bare = it.simulate.survey(200, rng=0).sample.with_columns(())
    grouped = it.Sample(bare.y, bare.p, cluster=np.arange(200) // 2)
    steps = {
        step for own in (bare, grouped, by_class) for step in audit_steps(own, (), 79, 1, True)
    }
    told = {step_words(step, ("age",)) for step in steps}
    assert len(told) == len(steps) >= 10


def test_an_audit_tells_its_stages_in_order(town, capsys):
    it.audit(town, ["mean(age)"], draws=79, rng=0, progress=True)
    lines = [line.split(" (about")[0] for line in said(capsys)]
    assert lines == headings(town, 1, True)
    words = "testing calibration given income, age and region, and by how much and where it fails"
    assert lines[1] == f"itrust: 2 of 7: {words}"


def test_stages_that_are_not_wanted_are_not_counted(town, capsys):
    bare = town.with_columns(())
    it.audit(bare, draws=79, rng=0, charts=False, robustness=False, progress=True)
    lines = [line.split(" (about")[0] for line in said(capsys)]
    assert lines == headings(bare, 0, False, False)
    assert len(lines) == 5


def test_an_audit_is_silent_in_a_script(town, capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINES_PATIENCE", -1.0)
    it.audit(town, draws=79, rng=0, charts=False)
    assert said(capsys) == []


def test_long_stages_move_while_they_are_at_work(town, monkeypatch):
    shares = {}

    def shown(meter, title):
        if title is not None:
            shares.setdefault(title(), []).append(meter.share)

    real = progress._display
    monkeypatch.setattr(
        progress, "_display", lambda show: shown if progress._above.get() is None else real(show)
    )
    it.audit(town, draws=79, rng=0)
    passing = step_words("pass", town.names)
    for words in (passing, step_words("charts", town.names)):
        assert shares[words][-1] == pytest.approx(1.0)
    assert len(set(shares[step_words("charts", town.names)])) > 5


def test_a_comparison_tells_its_models(town, capsys):
    it.compare({"a": town, "b": town}, draws=19, rng=0, progress=True)
    lines = [line.split(" (about")[0] for line in said(capsys)]
    assert lines == [
        f"itrust: {k} of 2: comparing models: {name}" for k, name in ((1, "a"), (2, "b"))
    ]


@pytest.fixture
def homes(tmp_path, town):
    path = tmp_path / "homes.csv"
    ages = town.column("age").values
    rows = [f"{y:.0f},{p},{age}" for y, p, age in zip(town.y, town.p, ages, strict=True)]
    path.write_text("\n".join(["y,p,age", *rows]) + "\n")
    return path


@pytest.mark.parametrize("quiet", [False, True])
def test_the_command_tells_stages_in_a_pipe_unless_it_is_quiet(homes, quiet, monkeypatch):
    monkeypatch.setattr(progress, "LINES_PATIENCE", -1.0)
    columns = ["--label", "y", "--prob", "p", "--on", "age", "--draws", "79"]
    found = invoke("audit", homes, *columns, *(["--quiet"] if quiet else []))
    lines = [line for line in found.stderr.splitlines() if line.startswith("itrust: ")]
    assert found.exit_code == 0
    assert len(lines) == (0 if quiet else 6)
    assert "itrust: " not in found.stdout
