import subprocess
import sys

import itrust
from itrust import demo


def test_demo_tells_the_wrong_model_from_the_right_one(capsys):
    assert demo.main() == 0
    out = capsys.readouterr().out
    assert "p-value         0.001   (exact; 0 of 999 draws are as large)" in out
    assert "H0: P(y = 1 | x, p) = p" in out
    assert out.isascii()


def test_the_core_imports_without_any_extra():
    """pandas, polars and matplotlib belong to users and tests, not to the core."""
    hide = "import sys; sys.modules |= dict.fromkeys(['pandas', 'polars', 'matplotlib']); "
    subprocess.run([sys.executable, "-c", f"{hide} import itrust.demo"], check=True)


def test_everything_public_is_there():
    assert all(hasattr(itrust, name) for name in itrust.__all__)
