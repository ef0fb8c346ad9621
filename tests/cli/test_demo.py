import subprocess
import sys

import pytest

import itrust
from itrust.cli import demo


@pytest.mark.slow
def test_demo_tells_the_wrong_model_from_the_right_one(capsys, monkeypatch):
    asked = []
    audit = itrust.audit
    monkeypatch.setattr(
        itrust, "audit", lambda *given, **more: asked.append(more) or audit(*given, **more)
    )
    demo.tell()
    assert [more["charts"] for more in asked] == [False]  # no page, no charts
    out = capsys.readouterr().out
    assert "p-value         0.001   (exact; 0 of 999 draws are as large)" in out
    assert "H0: P(y = 1 | x, p) = p" in out
    assert out.isascii()


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
    assert all(hasattr(itrust, name) for name in itrust.__all__)
