"""Files are written whole: failures, kills, links, modes."""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from itrust import InputError
from itrust._core import write_all, write_whole, writer_of

WRITER = """
import sys
from pathlib import Path
from itrust._core import write_all, writer_of
for number in range(1_000):
    text = f"{number} " * 200_000
    write_all({Path(sys.argv[1]) / f"{k}.txt": writer_of(lambda: text) for k in range(3)})
    print(number, flush=True)
"""


def text(content="new"):
    return writer_of(lambda: content)


def texts(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_what_the_system_refuses_is_one_sentence_and_the_old_file_stays(
    call, tmp_path, monkeypatch
):
    write_whole(tmp_path / "a.txt", "old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(InputError) as refused:
        write_all({tmp_path / "a.txt": text(), tmp_path / "b.txt": text()})
    monkeypatch.undo()
    told = f"{tmp_path / 'a.txt'} cannot be written: No space left on device"
    assert str(refused.value) == told
    assert texts(tmp_path) == {"a.txt": "old"}


def test_no_file_is_moved_in_before_all_are_written(tmp_path):
    def fail(path):
        path.write_text("half")
        raise ZeroDivisionError

    write_whole(tmp_path / "a.txt", "old")
    with pytest.raises(ZeroDivisionError):
        write_all({tmp_path / "a.txt": text(), tmp_path / "b.txt": fail})
    assert texts(tmp_path) == {"a.txt": "old"}


def test_ctrl_c_while_a_file_is_written_leaves_nothing(tmp_path):
    def stop(path):
        path.write_text("half")
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        write_all({tmp_path / "a.txt": text(), tmp_path / "b.txt": stop})
    assert os.listdir(tmp_path) == []


def test_a_process_that_is_killed_at_any_time_leaves_whole_files(tmp_path):
    rng = random.Random(1)
    for _ in range(5):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            first = process.stdout.readline()
            time.sleep(rng.uniform(0, 0.1))
            process.kill()
            done = [first, *process.stdout.read().split()]
        for path in tmp_path.glob("[0-9].txt"):
            words = path.read_text().split()
            assert len(words) == 200_000
            assert int(words[0]) in (int(done[-1]), int(done[-1]) + 1)
            assert set(words) == {words[0]}
    assert all(path.name.startswith(".itrust-") for path in set(tmp_path.glob(".*")))


def test_new_files_get_the_usual_mode_and_old_ones_keep_theirs(tmp_path):
    (tmp_path / "kept.txt").write_text("old")
    (tmp_path / "kept.txt").chmod(0o640)
    (tmp_path / "secret.txt").write_text("old")
    (tmp_path / "secret.txt").chmod(0o600)
    seen = {}

    def look(path):
        seen[path.suffix] = stat.S_IMODE(path.stat().st_mode)
        path.write_text("new")

    before = os.umask(0o027)
    try:
        write_all({tmp_path / name: look for name in ("fresh.csv.gz", "kept.txt", "secret.txt")})
    finally:
        os.umask(before)
    assert seen == {".txt": 0o600, ".gz": 0o640}
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"fresh.csv.gz": 0o640, "kept.txt": 0o640, "secret.txt": 0o600}


def test_a_file_that_cannot_keep_its_group_shows_no_other_group_more(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a.txt").chmod(0o664)

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    write_whole(tmp_path / "a.txt", "new")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o644


def test_a_link_stays_a_link_and_leads_where_it_led_at_first(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "page.html").write_text("old")
    link = tmp_path / "page.html"
    link.symlink_to("real/page.html")

    def turn(path):
        path.write_text("new")
        link.unlink()
        link.symlink_to("other.html")

    write_all({link: turn})
    assert texts(tmp_path / "real") == {"page.html": "new"}
    assert os.readlink(link) == "other.html"


def test_only_ordinary_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    for path in (*(tmp_path / name for name in ("fifo", "loop", "folder")), Path("/dev/null")):
        with pytest.raises(InputError, match=f"{path.name} is not an ordinary file"):
            write_whole(path, "new")
    with pytest.raises(InputError, match=r"x cannot be written: No such file or directory"):
        write_whole(tmp_path / "nowhere" / "x", "new")
