"""How much memory there is, and what is said if it is too little."""

import subprocess
import sys

import numpy as np
import pytest

import itrust as it
from itrust._core import free_memory, memory
from itrust.cli.command import lacks_memory


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    file = tmp_path_factory.mktemp("rows") / "rows.csv"
    town = it.simulate.survey(3_000, rng=0).sample
    table = np.column_stack([town.y, town.p, town.column("age").values])
    np.savetxt(file, table, delimiter=",", header="y,p,age", comments="")
    return file


def command(rows):
    words = ["audit", rows, "--label", "y", "--prob", "p", "--on", "age", "--draws", "99"]
    return [*map(str, words), "--stream", "--seed", "0"]


@pytest.mark.slow
def test_memory_that_does_not_suffice_is_one_sentence(rows):
    code = (
        "import sys; from itrust.data import Scan; from itrust.cli import main\n"
        "def fail(*_, **__): raise MemoryError\n"
        f"Scan.extract = fail; sys.argv[1:] = {command(rows)!r}; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 69, done.stderr
    assert "itrust: there is not enough memory for this;" in done.stderr
    assert "internal error" not in done.stderr


def test_a_library_that_finds_no_room_lacks_memory():
    assert lacks_memory(ImportError("x.so: failed to map segment from shared object"))
    assert lacks_memory(MemoryError())
    assert not lacks_memory(ImportError("No module named 'x'"))


def test_free_memory_is_the_least_of_what_machine_and_container_leave(tmp_path, monkeypatch):
    assert 0 <= free_memory() < float("inf")
    for name in ("PROC", "CGROUP"):
        monkeypatch.setattr(memory, name, tmp_path)

    def free_with(**files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(f"{text}\n")
        return free_memory()

    assert free_with(meminfo="MemTotal: 900 kB\nMemAvailable:   800 kB") == 800 * 1024
    assert free_with(memory_max="max", memory_current="1000") == 800 * 1024
    stat = "anon 7\ninactive_file 800"
    assert free_with(memory_max="51000", memory_stat="") == 50_000
    assert free_with(memory_stat=stat) == 50_800  # files that the kernel would let go
