import io

import pytest

from itrust._core import progress, progress_bar, progress_shown, progress_stages


@pytest.fixture
def terminal(monkeypatch):
    """Standard error as a terminal whose output can be read."""
    from rich.console import Console

    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=70, _environ={"TERM": "xterm"})
    monkeypatch.setattr(progress, "_console", lambda show: console)  # noqa: ARG005
    return written


@pytest.fixture
def clock(monkeypatch):
    """Time that goes on only when it is told to."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(progress.time, "monotonic", lambda: Clock.now)
    return Clock


def run(show=None, steps=3):
    with progress_bar("rows", steps, show) as advance:
        for _ in range(steps):
            advance(1)


def test_nothing_is_written_into_a_pipe(capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINES_PATIENCE", -1.0)
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
    with progress_bar("outer", 1):
        run()
    assert "outer" in terminal.getvalue()
    assert "rows" not in terminal.getvalue()


def test_what_is_inside_silent_work_is_silent_too(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with progress_bar("outer", 1, False):
        run()
    assert terminal.getvalue() == ""


def test_work_inside_a_stage_moves_it_by_one_part(monkeypatch):
    seen = []

    def see(meter, title):
        if title is not None:
            seen.append((title(), meter.done))

    real = progress._display
    monkeypatch.setattr(
        progress, "_display", lambda show: see if progress._above.get() is None else real(show)
    )
    with progress_stages({"first": 1.0, "second": 3.0}, str.upper) as begin:
        begin("first")
        run(steps=1)
        begin("second", 2)
        run(steps=2)
        with progress_bar("says too little", 10) as advance:
            advance(2)
    assert seen == [
        ("FIRST", 0.0),
        ("FIRST", 0.25),
        ("SECOND", 0.25),
        ("SECOND", 0.4375),
        ("SECOND", 0.625),
        ("SECOND", pytest.approx(0.7)),
        ("SECOND", 1.0),
    ]


def test_lines_without_a_terminal_one_for_a_stage_once_the_work_is_long(clock, capsys):
    stages = {"reading": 1.0, "testing": 2.0, "drawing": 1.0}
    with progress_shown(True), progress_stages(stages) as begin:
        begin("reading")
        clock.now += 4.0
        advance = begin("testing", 4)
        clock.now += 4.0
        advance(2)
        clock.now += 4.0
        advance(2)
        begin("drawing")
    assert capsys.readouterr() == (
        "",
        "itrust: 2 of 3: testing (about 8 s left)\nitrust: 3 of 3: drawing (about 4 s left)\n",
    )


def test_nowhere_is_nowhere(terminal, capsys):
    with progress_shown(False):
        run(show=True)
    assert (terminal.getvalue(), *capsys.readouterr()) == ("", "", "")


def test_lines_are_written_at_once_where_they_are_asked_for(capsys):
    run(show=True)
    assert capsys.readouterr() == ("", "itrust: rows\n")


def test_the_time_left_is_told_only_when_something_is_known(clock):
    meter = progress.Meter([1.0, 1.0])
    clock.now += 60.0
    assert meter.left == ""
    meter.share = 0.5
    assert meter.left == "about 3 min left"
    meter.begun = clock.now
    assert meter.left == ""


def test_control_characters_of_names_do_not_reach_the_terminal(capsys):
    with progress_bar("given \x1b[31mage", 1, True):
        pass
    assert "\x1b" not in capsys.readouterr().err
