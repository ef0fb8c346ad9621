import io

import pytest

from itrust._core import progress, progress_bar


@pytest.fixture
def terminal(monkeypatch):
    """Standard error as a terminal whose output can be read."""
    written = io.StringIO()
    real = progress.Console
    monkeypatch.setattr(
        progress, "Console", lambda **_: real(file=written, force_terminal=True, width=70)
    )
    return written


def run(show=None, steps=3):
    with progress_bar("rows", steps, show) as advance:
        for _ in range(steps):
            advance(1)


def test_nothing_is_written_into_a_pipe(capsys):
    run()
    assert capsys.readouterr() == ("", "")


def test_short_work_stays_silent_even_in_a_terminal(terminal):
    run()
    assert terminal.getvalue() == ""


def test_long_work_shows_a_bar_in_a_terminal(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    run()
    assert "rows" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


def test_the_choice_is_the_users(terminal):
    run(show=False)
    assert terminal.getvalue() == ""
    run(show=True)
    assert "rows" in terminal.getvalue()


def test_an_error_ends_the_bar(terminal):
    def fail():
        with progress_bar("rows", 3, True) as advance:
            advance(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is back


def test_a_bar_inside_a_bar_stays_silent(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with progress_bar("outer", 1) as advance:
        run()
        advance(1)
    assert "outer" in terminal.getvalue()
    assert "rows" not in terminal.getvalue()
