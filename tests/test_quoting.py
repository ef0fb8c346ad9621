"""What pages say of studies is what the studies' files say."""

import json

import pytest

import level
import power
import quote
import recalibration
from quoting import kit


class OneProcess:
    """A pool that works in this process."""

    @staticmethod
    def map(function, *inputs, chunksize=1):  # noqa: ARG004
        return map(function, *inputs)


@pytest.mark.parametrize("page", kit.pages(), ids=lambda path: str(path.relative_to(kit.ROOT)))
def test_pages_say_what_the_files_of_the_studies_say(page):
    text = page.read_text(encoding="utf-8")
    assert kit.filled(text) == text, "run `make tables`"


def test_every_piece_is_shown_somewhere():
    shown = {place for page in kit.pages() for place in kit.places(page.read_text("utf-8"))}
    assert shown == set(kit.PIECES)
    assert {maker.__name__ for maker in quote.MAKERS} == {
        f"quoting.{file.stem}"
        for file in (kit.ROOT / "studies" / "quoting").glob("*.py")
        if file.stem not in ("__init__", "kit")
    }


def test_comments_within_a_line_do_not_begin_it():
    """Markdown would take the rest of such a line for HTML."""
    for page in kit.pages():
        for found in kit.PLACE.finditer(text := page.read_text(encoding="utf-8")):
            alone = text[: found.start()].endswith("\n") and "\n" in found[4]
            assert alone or not text[: found.start()].endswith("\n"), (page, found[1])


def test_a_piece_that_nobody_makes_is_an_error():
    with pytest.raises(KeyError, match=r"nothing makes power\.json: magic"):
        kit.filled("<!-- power.json: magic -->1<!-- end -->")


def test_tables_have_empty_cells_where_nothing_was_found():
    rows = [{"a": 1, "b": 0.25}, {"a": 2, "b": None}]
    told = kit.table(rows, {"a": str, "b": kit.share}, {"a": "n"})
    assert told == "| n | b |\n|---|---|\n| 1 | .250 |\n| 2 | |"


def test_a_study_keeps_tables_beside_those_that_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr(kit, "FOLDERS", (tmp_path,))
    monkeypatch.setattr(kit, "write_pages", list)
    kit.keep("some", {"first": {"rows": [1]}})
    kit.keep("some", {"second": {"rows": [2]}})
    kept = json.loads((tmp_path / "some.json").read_text())
    assert kept["tables"] == {"first": {"rows": [1]}, "second": {"rows": [2]}}


def test_the_study_of_level_makes_the_tables_that_are_kept(monkeypatch):
    monkeypatch.setattr(level, "RUNS", 2)
    made = level.table(level.SHIFTED, OneProcess)
    kept = kit.kept("levels")["tables"]["shifted"]
    assert made.keys() == kept.keys()
    assert [row.keys() for row in made["rows"]] == [row.keys() for row in kept["rows"]]
    assert set(made["rows"][0].values()) <= {level.SHIFTED[0].title, 0.0, 0.5, 1.0}


def test_the_study_of_power_makes_the_tables_that_are_kept(monkeypatch):
    monkeypatch.setattr(power, "LEVEL_RUNS", 2)
    monkeypatch.setattr(power, "RUNS", 2)
    monkeypatch.setattr(power, "PRINTED", {500: {20: 0.069}})
    monkeypatch.setattr(power, "LEVELS", {"(e) thirty rows": power.LEVELS["(e) thirty rows"]})
    kept = kit.kept("power")["tables"]
    assert set(kept) == set(power.SECTIONS)
    for name in ("level", "papers"):
        made = power.SECTIONS[name](OneProcess)
        assert made.keys() == kept[name].keys()
        assert made["rows"][0].keys() == kept[name]["rows"][0].keys()


def test_the_judgement_of_recalibration_follows_from_its_figures():
    """They were rounded when they were kept, so ratios agree to two digits."""
    tables = kit.kept("recalibration")["tables"]
    for kept in tables["judged"]["rows"]:
        rows = [r for r in tables["all"]["rows"] if f"{r['set']}, {r['model']}" == kept["setting"]]
        made = recalibration.judgement(rows)
        assert made.pop("ratio") == pytest.approx(kept["ratio"], abs=0.006)
        assert made.pop("brier") == pytest.approx(kept["brier"], abs=1e-4)
        assert made.items() <= kept.items()
