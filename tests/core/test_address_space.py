"""Processes with little address space: what is reserved, and what is said if that is too little."""

import os
import resource
import subprocess
import sys

import numpy as np
import pytest

import itrust as it
from itrust.cli.exit import lacks_memory

pytestmark = pytest.mark.slow

LITTLE = 1_500_000_000
POOL = "import itrust, pyarrow as pa; print(pa.default_memory_pool().backend_name)"
LATER = "import pyarrow as pa; import itrust; print(pa.default_memory_pool().backend_name)"


def limited(*words, limit=LITTLE, **environment):
    kept = {k: v for k, v in os.environ.items() if k != "ARROW_DEFAULT_MEMORY_POOL"}
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        env=kept | {"OMP_NUM_THREADS": "1"} | environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


def test_arrow_reserves_nothing_ahead_where_address_space_is_scarce():
    assert limited("-c", POOL).stdout.strip() == "system"
    assert limited("-c", LATER).stdout.strip() == "system"
    kept = limited("-c", POOL, ARROW_DEFAULT_MEMORY_POOL="mimalloc").stdout.strip()
    assert kept == "mimalloc"


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


def test_a_command_works_with_little(rows):
    done = limited("-m", "itrust", *command(rows))
    assert done.returncode == 0, done.stderr


def test_memory_that_does_not_suffice_is_one_sentence(rows):
    code = (
        "import sys; from itrust.data import Scan; from itrust.cli import main\n"
        "def fail(*_, **__): raise MemoryError\n"
        f"Scan.extract = fail; sys.argv[1:] = {command(rows)!r}; main()"
    )
    done = limited("-c", code, limit=resource.RLIM_INFINITY)
    assert done.returncode == 69, done.stderr
    assert "itrust: there is not enough memory for this;" in done.stderr
    assert "internal error" not in done.stderr


def test_a_library_that_finds_no_room_lacks_memory():
    assert lacks_memory(ImportError("x.so: failed to map segment from shared object"))
    assert lacks_memory(MemoryError())
    assert not lacks_memory(ImportError("No module named 'x'"))
