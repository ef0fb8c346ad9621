import contextlib
import importlib.util
import io
import re
import subprocess
import sys

import pytest

import itrust
from itrust.cli import demo
from shell import invoke


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the demo prints at 80 columns, the settings of its audit, and the rows it writes."""
    asked, out = [], io.StringIO()
    rows = tmp_path_factory.mktemp("demo") / "homes.csv"
    audit = itrust.audit
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("COLUMNS", "80")
        patch.setattr(
            itrust, "audit", lambda *given, **more: asked.append(more) or audit(*given, **more)
        )
        demo.tell(rows=rows)
    return out.getvalue(), asked, rows


@pytest.mark.slow
def test_demo_tells_a_miscalibrated_model_from_a_calibrated_one(told):
    out, asked, _ = told
    assert [more["charts"] for more in asked] == [False]  # no page, no charts
    assert "p 0.0001 (exact): miscalibrated" in out
    for name in ("overall", "a good model"):  # where nothing is to be found
        assert float(re.search(rf"{name} +p ([\d.]+)", out)[1]) > 0.05
    assert "with labels: biased" in " ".join(out.split())
    assert out.isascii()


@pytest.mark.slow
def test_demo_fits_a_screen_and_ends_with_the_next_command(told):
    out, _, rows = told
    lines = out.splitlines()
    assert len(lines) <= 23  # and the prompt
    assert max(len(line) for line in lines if str(rows) not in line) <= 80
    command = out[out.index("  itrust audit") :].replace("\\\n", " ").split()
    assert command[:3] == ["itrust", "audit", str(rows)]
    assert out.endswith("--report page.html\n")


@pytest.mark.slow
def test_the_next_command_of_the_demo_can_be_typed_as_it_is(told, monkeypatch, tmp_path):
    out, _, _ = told
    monkeypatch.chdir(tmp_path)
    command = out[out.index("itrust audit") :].replace("\\\n", " ").split()[1:]
    found = invoke(*command, "--draws", "39", "--quiet")
    assert found.exit_code == 0, found.stderr
    assert "2,000 rows" in found.stdout
    assert (tmp_path / "page.html").exists()


def test_in_a_narrow_terminal_names_stand_above(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert demo._beside("overall", "p 0.097: the model passes") == [
        "overall",
        "  p 0.097: the model passes",
    ]


def test_rows_of_the_demo_need_an_ending_that_is_known(monkeypatch):
    monkeypatch.setattr(demo, "tell", lambda *_: pytest.fail("refused too late"))
    found = invoke("demo", "--rows", "homes.doc")
    assert found.exit_code == 2
    assert "homes.doc" in found.stderr


def test_the_core_imports_without_any_extra():
    """pandas, polars and matplotlib belong to users and tests, not to the core."""
    code = """
import sys

class Hide:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("pandas", "polars", "matplotlib", "torch", "dask"):
            raise ImportError(name)

sys.meta_path.insert(0, Hide())
import itrust.cli.demo
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_everything_public_is_there():
    names = set(itrust.__all__)
    if importlib.util.find_spec("torch") is None:
        names.remove("losses")
        with pytest.raises(ImportError, match="needs torch"):
            _ = itrust.losses
    assert all(hasattr(itrust, name) for name in names)
