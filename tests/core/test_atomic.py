"""Files are replaced together or not at all: failures, kills, links, modes, hostile journals."""

import errno
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from itrust import InputError
from itrust._core import replacement as on_disk
from itrust._core import undo_interrupted, write_all, write_whole, writer_of
from itrust._core.interrupts import Interrupts
from itrust._core.keeper import Keeper, _settle
from itrust._core.recovery import Locks
from killing import MIXED, NEW, OLD, PLACES, Steps, old_set, state, strays, write_new_set

KILLING = Path(__file__).parents[1] / "killing.py"
WRITER = """
import sys
from pathlib import Path
from itrust._core import write_all, writer_of
for number in range(int(sys.argv[2])):
    text = f"{number} " * 200_000
    write_all({Path(sys.argv[1]) / f"{k}.txt": writer_of(lambda: text) for k in range(4)})
    print(number, flush=True)
"""


@pytest.fixture
def alone(monkeypatch):
    """Without a keeper, as where no child can be started."""
    monkeypatch.setattr(Keeper, "start", classmethod(lambda *_: None))


def text(content="new"):
    return writer_of(lambda: content)


def written_or_refused(folder, why):
    """Which set there should be now."""
    try:
        write_new_set(folder)
    except InputError as error:
        return OLD if why in str(error) else str(error)
    return NEW


@pytest.mark.parametrize("call", ["open", "write", "fchmod", "fsync", "link", "rename", "replace"])
@pytest.mark.usefixtures("alone")
def test_whatever_the_system_refuses_the_old_set_or_the_new_one_is_there(call, tmp_path):
    at, codes = 0, []
    while True:
        folder = tmp_path / str(at)
        old_set(folder)
        with Steps((call,), at, errno.ENOSPC) as steps:
            told = written_or_refused(folder, "cannot be written: No space left on device")
        assert state(folder) == told
        assert strays(folder) == []
        codes.append(told)
        if steps.taken <= at:
            break
        at += 1
    # Folders that cannot be locked, modes that cannot be set and files that cannot have a second
    # name stop nobody; every move does.
    assert codes.count(OLD) == {
        "open": 13,
        "write": 1,
        "fchmod": 4,
        "fsync": 11,
        "link": 0,
    }.get(call, at)


@pytest.mark.usefixtures("alone")
def test_what_cannot_be_removed_now_is_removed_by_the_next_run(tmp_path):
    at, taken = 0, 1
    while at < taken:
        folder = tmp_path / str(at)
        old_set(folder)
        with Steps(("unlink",), at, errno.EIO) as steps:
            told = written_or_refused(folder, "cannot be written: Input/output error")
        assert state(folder) == told
        undo_interrupted([folder / "here", folder / "there"])
        assert strays(folder) == []
        at, taken = at + 1, steps.taken


@pytest.mark.slow
def test_killed_at_every_step_the_old_set_or_the_new_one_is_found():
    """The process that writes, its keeper, or both; without a keeper the next run mends it."""
    run = subprocess.run([sys.executable, KILLING], capture_output=True, text=True, check=True)
    found = {own.pop("who"): own for own in map(json.loads, run.stdout.splitlines())}
    assert list(found) == ["alone", "writer", "keeper", "both"]
    said = {key for own in found.values() for key in own}
    assert not {key for key in said if "wrong" in key or "for ever" in key}
    assert "after the next run: mixed" not in said
    # Where one of the two lives, nobody need wait for the next run.
    at_once = {key for who in ("writer", "keeper") for key in found[who] if "at once" in key}
    assert at_once == {"at once: old", "at once: old, strays", "at once: new"}
    assert found["writer"]["at once: old, strays"] <= 3  # locks, before there is a keeper
    assert "at once: old, strays" not in found["keeper"]
    assert found["alone"]["at once: mixed, strays"] == 3  # between its four moves
    assert all(own["steps"] > 30 for own in found.values())


def one_set(folder, spared=()):
    """The number that all four files hold; None where there are none."""
    paths = [path for path in folder.iterdir() if path.suffix not in spared]
    found = {path.name: path.read_text() for path in paths}
    assert found == {} or set(found) == {f"{k}.txt" for k in range(4)}, sorted(found)
    (content,) = set(found.values()) or {None}
    return None if content is None else int(content.split(maxsplit=1)[0])


@pytest.mark.slow
def test_a_process_that_is_killed_at_any_time_leaves_one_set_and_at_most_a_lock(tmp_path):
    """A lock is left by a process that is killed before its keeper knows of it."""
    rng = random.Random(1)
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = [sys.executable, "-c", WRITER, str(folder), "1000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            begun = int(process.stdout.readline())
            time.sleep(rng.uniform(0, 0.3))
            process.kill()
            said = [begun, *map(int, process.stdout.read().split())]
        assert one_set(folder, {".lock"}) in (said[-1], said[-1] + 1)


def test_writers_side_by_side_leave_one_of_their_sets(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path), "4"]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for process in others:
        assert process.communicate()[0].split() == ["0", "1", "2", "3"]
        assert process.returncode == 0
    assert one_set(tmp_path) is not None


@pytest.mark.usefixtures("alone")
def test_threads_write_to_one_folder_without_harm(tmp_path):
    def work(own):
        for _ in range(8):
            write_all({tmp_path / f"{k}.txt": text(f"{own} ") for k in range(4)})

    threads = [threading.Thread(target=work, args=(own,)) for own in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one_set(tmp_path) in (1, 2)


@pytest.mark.usefixtures("alone")
def test_temporary_files_of_others_at_work_stay(tmp_path):
    def also_tidy(path):
        assert undo_interrupted([tmp_path]) == []
        assert path.exists()
        path.write_text("new")

    write_whole(tmp_path / "a.txt", "old")
    write_all({tmp_path / "a.txt": also_tidy, tmp_path / "b.txt": also_tidy})
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]


def test_a_temporary_file_is_nobodys_to_read_and_gets_its_mode_at_the_end(tmp_path):
    (tmp_path / "kept.txt").write_text("old")
    (tmp_path / "kept.txt").chmod(0o640)
    seen = {}

    def look(path):
        seen[path.suffix] = stat.S_IMODE(path.stat().st_mode)
        path.write_text("new")

    before = os.umask(0o027)
    try:
        write_all({tmp_path / "kept.txt": look, tmp_path / "fresh.csv.gz": look})
    finally:
        os.umask(before)
    assert seen == {".txt": 0o600, ".gz": 0o600}
    assert stat.S_IMODE((tmp_path / "kept.txt").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "fresh.csv.gz").stat().st_mode) == 0o640


def test_a_file_that_cannot_keep_its_group_shows_no_other_group_more(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a.txt").chmod(0o664)
    old = os.lstat(tmp_path / "a.txt")
    other = os.stat_result((*old[:5], old.st_gid + 1, *old[6:]))
    real = os.lstat
    monkeypatch.setattr(
        os, "lstat", lambda path: other if str(path).endswith("a.txt") else real(path)
    )

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    write_whole(tmp_path / "a.txt", "new")
    monkeypatch.undo()
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o644


def test_a_link_stays_a_link_and_leads_where_it_led_at_first(tmp_path):
    for name in ("real", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "real" / "page.html").write_text("old")
    link = tmp_path / "page.html"
    link.symlink_to("real/page.html")

    def turn(path):
        path.write_text("new")
        link.unlink()
        link.symlink_to("other/page.html")

    write_all({link: turn})
    assert (tmp_path / "real" / "page.html").read_text() == "new"
    assert os.listdir(tmp_path / "other") == []


def test_only_ordinary_files_are_replaced_and_each_once(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "same").symlink_to("a.txt")
    for name in ("fifo", "loop", "folder"):
        with pytest.raises(InputError, match=f"{name} is not an ordinary file"):
            write_whole(tmp_path / name, "new")
    with pytest.raises(InputError, match=r"a\.txt and .*same are the same file"):
        write_all({tmp_path / "a.txt": text(), tmp_path / "same": text()})
    assert sorted(os.listdir(tmp_path)) == ["fifo", "folder", "loop", "same"]


def test_a_temporary_file_that_somebody_replaced_is_not_moved_in(tmp_path):
    def swap(path):
        (tmp_path / "evil").write_text("evil")
        os.replace(tmp_path / "evil", path)

    with pytest.raises(InputError, match="was replaced by another"):
        write_all({tmp_path / "a.txt": swap})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("files", [1, 2])
def test_a_second_request_to_end_waits_until_all_is_cleaned_up(number, files, tmp_path):
    def leave(*_):
        raise SystemExit(1)

    def ask_twice(path):
        path.write_text("half")
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)

    before = signal.signal(number, leave)
    try:
        with pytest.raises(SystemExit):
            write_all({tmp_path / f"{k}.txt": ask_twice for k in range(files)})
        assert signal.getsignal(number) is leave
    finally:
        signal.signal(number, before)
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("alone")
def test_ctrl_c_between_two_moves_waits_for_the_last_one(tmp_path, monkeypatch):
    old_set(tmp_path)
    real = os.replace

    def interrupted(*args):
        os.kill(os.getpid(), signal.SIGINT)
        real(*args)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_new_set(tmp_path)
    assert state(tmp_path) == NEW
    assert strays(tmp_path) == []


@pytest.mark.usefixtures("alone")
def test_ctrl_c_while_a_write_fails_is_not_lost(tmp_path, monkeypatch):
    def full(_):
        os.kill(os.getpid(), signal.SIGINT)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.txt", "new")
    assert os.listdir(tmp_path) == []


def test_all_signals_are_as_before_even_if_each_comes_as_soon_as_it_may(monkeypatch):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    came = []

    def leave(number, _):
        came.append(number)
        raise SystemExit(1)

    before = {number: signal.signal(number, leave) for number in numbers}
    real = signal.signal

    def restored(number, handler):
        real(number, handler)
        if handler is leave:
            signal.raise_signal(number)

    def work():
        with Interrupts():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)

    try:
        monkeypatch.setattr(signal, "signal", restored)
        with pytest.raises(SystemExit):
            work()
        assert [signal.getsignal(number) for number in numbers] == [leave] * 3
    finally:
        monkeypatch.undo()
        for number, handler in before.items():
            signal.signal(number, handler)
    assert sorted(came[:3]) == sorted(numbers)
    assert came[3:] == [signal.SIGTERM, signal.SIGINT]  # those that waited


def test_where_no_child_starts_or_answers_files_are_moved_in_all_the_same(tmp_path, monkeypatch):
    for command in ("", str(tmp_path / "nowhere"), "/bin/false"):
        monkeypatch.setattr(sys, "executable", command)
        old_set(tmp_path)
        write_new_set(tmp_path)
        assert state(tmp_path) == NEW
        assert strays(tmp_path) == []


def started(monkeypatch):
    """Commands of children, none of which starts."""
    commands = []

    def refuse(command, **_):
        commands.append(command)
        raise OSError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    return commands


def test_a_program_that_holds_python_is_not_started_as_its_own_child(tmp_path, monkeypatch):
    with monkeypatch.context() as within:
        commands = started(within)
        within.setattr(sys, "frozen", True, raising=False)
        write_all({tmp_path / name: text() for name in "ab"})
    assert commands == []
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize("mode", [0, 1])
def test_a_child_encodes_names_of_files_as_its_parent_does(mode, tmp_path, monkeypatch):
    with monkeypatch.context() as within:
        commands = started(within)
        known = {name: getattr(sys.flags, name) for name in dir(sys.flags) if name[0] != "_"}
        within.setattr(sys, "flags", SimpleNamespace(**{**known, "utf8_mode": mode}))
        write_all({tmp_path / name: text() for name in "ab"})
    ((*command, _),) = commands
    told = [*command, "-c", "import sys; print(sys.flags.utf8_mode)"]
    assert subprocess.check_output(told, text=True) == f"{mode}\n"


@pytest.fixture
def without_locks(monkeypatch):
    """As on a file system that has none; nobody could undo there what a keeper leaves."""
    monkeypatch.setattr(Locks, "take", lambda *_: False)
    monkeypatch.setattr(Keeper, "start", lambda *_: pytest.fail("a keeper"))


@pytest.mark.usefixtures("without_locks")
def test_a_file_system_without_locks_or_second_names_gets_whole_files(tmp_path):
    old_set(tmp_path)
    with Steps(("link",), 0, errno.EPERM), Steps(("replace",), 2, errno.EIO):
        assert written_or_refused(tmp_path, "Input/output error") == OLD
    assert state(tmp_path) == OLD
    assert strays(tmp_path) == []


@pytest.mark.usefixtures("without_locks")
def test_where_undoing_fails_too_the_old_files_are_kept_and_named(tmp_path):
    old_set(tmp_path)
    told = "Input/output error; undoing it failed; what was there before is kept as "
    # The third move fails, and the fourth, which is the first one back.
    with Steps(("replace",), 2, errno.EIO), Steps(("replace",), 2, errno.EIO):
        assert written_or_refused(tmp_path, told) == OLD
    kept = [Path(path) for path in strays(tmp_path)]
    assert [path.read_text() for path in kept] == [f"{OLD} {name}" for name in PLACES[:2]]


@pytest.fixture
def half_done(tmp_path):
    """A set of which two files are replaced, and nobody at work on it any more."""
    old_set(tmp_path)
    targets = tuple(on_disk.Target(*os.path.split(tmp_path / name), "") for name in PLACES)
    what = on_disk.Replacement("0123456789abcdef", targets, True)
    locks = Locks()
    assert locks.take(what)
    for number, name in enumerate(PLACES):
        Path(what.temporary(number)).write_text(f"{NEW} {name}")
    known = [on_disk._kept(what, number) for number in range(4)]
    on_disk._write_journal(what, known)
    for number in range(2):
        os.replace(what.temporary(number), what.place(number))
    locks.release()
    assert state(tmp_path) == MIXED
    return what


@pytest.mark.usefixtures("half_done")
@pytest.mark.parametrize("name", ["here", "there"])
def test_the_next_run_in_any_folder_undoes_it_and_says_so(tmp_path, name):
    with pytest.warns(RuntimeWarning, match=r"while it replaced 'page\.html', 'audit\.json'"):
        write_whole(tmp_path / name / "other.txt", "new")
    (tmp_path / name / "other.txt").unlink()
    assert state(tmp_path) == OLD
    assert strays(tmp_path) == []


def test_a_folder_that_was_moved_since_is_mended_where_it_is(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    code = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path; from killing import Steps, writer_of, write_all, Keeper\n"
        "Keeper.start = classmethod(lambda *_: None)\n"
        "with Steps(('replace',), 1):\n"
        "    write_all({Path(sys.argv[1]) / k: writer_of(lambda: 'new') for k in 'ab'})\n"
    )
    command = [sys.executable, "-c", code, str(folder), str(KILLING.parent)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert "a" in os.listdir(folder)
    moved = folder.rename(tmp_path / "elsewhere")
    ((note, _),) = undo_interrupted([moved])
    assert note == (
        "an earlier run was stopped while it replaced 'a', 'b'; these files are again as they "
        "were before it"
    )
    assert os.listdir(moved) == []


@pytest.mark.usefixtures("half_done")
def test_a_file_that_was_changed_since_is_left_as_it_is(tmp_path):
    (tmp_path / PLACES[0]).write_text("by hand")
    ((note, _),) = undo_interrupted([tmp_path / "here"])
    assert "all are left as they are, for 'page.html' changed since" in note
    assert (tmp_path / PLACES[0]).read_text() == "by hand"
    assert (tmp_path / PLACES[1]).read_text() == f"{NEW} {PLACES[1]}"
    # The old files that are not in their places have names that nobody removes.
    kept = strays(tmp_path)
    assert [Path(path).read_text() for path in kept] == [f"{OLD} {name}" for name in PLACES[:2]]
    assert note.endswith(f"; what was there before is kept as {', '.join(kept)}")
    assert undo_interrupted([tmp_path / "here"]) == []
    assert strays(tmp_path) == kept


def test_a_killed_keeper_whose_files_were_changed_since_is_told_with_the_old_ones(
    half_done, tmp_path
):
    (tmp_path / PLACES[0]).write_text("by hand")
    with pytest.raises(OSError, match=r"was killed; all are left as they are, .* is kept as "):
        _settle(half_done)


def test_a_killed_keeper_whose_journal_is_damaged_is_told_in_one_sentence(half_done):
    Path(half_done.journal).write_text("{")
    with pytest.raises(OSError, match=r"was killed, and .* is left alone: it is damaged"):
        _settle(half_done)


def damaged(**changes):
    def damage(path):
        facts = json.loads(path.read_text())
        files = facts["files"]
        for key, value in changes.items():
            if key in facts:
                facts[key] = value
            else:
                files[1][key] = value
        path.write_text(json.dumps(facts))

    return damage


def as_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.chmod(0o644),
        lambda path: os.link(path, path.with_name("second")),
        lambda path: path.write_text("{"),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_bytes(b" " * 2**21),
        as_link,
        damaged(version=2),
        damaged(token="f" * 16),
        damaged(files=[]),
        damaged(files=[1, 2]),
        damaged(name="../../etc/passwd"),
        damaged(name=".."),
        damaged(name=7),
        damaged(name=".itrust-0123456789abcdef.lock"),
        damaged(folder="relative"),
        damaged(folder=["here"]),
        damaged(ending="/x"),
        damaged(new=None),
        damaged(new=[1, 2]),
        damaged(old=[1, 2, "3"]),
        damaged(backup=None),
    ],
)
def test_a_journal_that_is_not_plainly_ours_is_left_alone(damage, half_done, tmp_path):
    damage(Path(half_done.journal))
    before = {path: path.lstat().st_ino for path in tmp_path.rglob("*")}
    ((note, _),) = undo_interrupted([tmp_path / "here"])
    assert f"{half_done.journal} is left alone: " in note
    assert {path: path.lstat().st_ino for path in tmp_path.rglob("*")} == before


def test_a_journal_brings_back_only_the_files_that_it_recorded(half_done, tmp_path):
    Path(half_done.backup(0)).unlink()
    Path(half_done.backup(0)).write_text("evil")
    undo_interrupted([tmp_path / "here"])
    assert (tmp_path / PLACES[0]).read_text() == f"{NEW} {PLACES[0]}"


@pytest.mark.parametrize("damage", [lambda path: path.chmod(0o666), Path.unlink])
def test_what_has_no_lock_of_ours_is_not_removed(damage, half_done, tmp_path):
    damage(Path(half_done.lock(half_done.home)))
    before = strays(tmp_path)
    ((note, _),) = undo_interrupted([tmp_path / "here"])
    assert "is left alone" in note
    assert strays(tmp_path) == before
