"""Files too large for memory: when rows are read some at a time, and the scan that names them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import itrust as it
from itrust._core import free_memory
from itrust.cli.columns import said_of_columns
from itrust.cli.inputs import InputFiles
from itrust.cli.options import Options
from itrust.cli.roles import FileRoles, positive_value, typed_units
from itrust.data import Scan

SHARE = 1 / 5  # of free memory; rows take several times the room of their file
PACKED_HEAD, UNPACKED_HEAD = 2**16, 2**26  # to tell how much a file unpacks to
UNPACKED = 5  # a gzipped text is so many times as large, or more


def streams(files: Sequence[Path], asked: bool, free: Callable[[], float] | None = None) -> bool:
    """Whether files are to be read some rows at a time."""
    return asked or sum(map(_about_bytes, files)) > SHARE * (free or free_memory)()


def read_scan(
    source: InputFiles, roles: FileRoles, covariates: Sequence[str], options: Options
) -> Scan:
    """Name the rows of files, as `read_samples` reads them; for one column of probabilities."""
    said = said_of_columns(source, options)
    said.condition_columns(source, roles.prob)
    positive = None
    if options.positive is not None:
        labels = (batch[roles.label] for batch in source.batches([roles.label]))
        positive = positive_value(labels, options.positive)
    return it.scan(
        source.file_set,
        label=roles.label,
        prob=roles.prob[0],
        on=covariates,
        weights=roles.weights,
        cluster=roles.cluster or None,
        strata=roles.strata or None,
        replicate_weights=typed_units(source, roles.replicate_weights) or None,
        replicate_method=options.replicate_method,
        positive=positive,
        missing=options.missing,
        categories=said.kinds.categories,
        numbers=said.kinds.numbers,
        value_labels=said.kinds.value_labels,
        na_values=list(said.na_values),
        where=said.where,
        form=source.form,
    )


def _about_bytes(file: Path) -> float:
    size = file.stat().st_size
    return max(UNPACKED * size, about_unpacked(file)) if file.suffix == ".gz" else size


def about_unpacked(path: Path) -> float:
    """About how large a gzipped file is when it is unpacked, by its first bytes."""
    with path.open("rb") as file:
        head = file.read(PACKED_HEAD)
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        size = len(unpacking.decompress(head, UNPACKED_HEAD))
    except zlib.error:  # the reader says what is wrong with it
        return 0.0
    used = len(head) - len(unpacking.unconsumed_tail) - len(unpacking.unused_data)
    return path.stat().st_size * size / max(used, 1)
