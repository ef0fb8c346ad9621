"""Standard input, kept in a file: how much may come, unpack and lie on the disk."""

from __future__ import annotations

import gzip
import math
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from itrust._core import InputError
from itrust.data.formats import GZIP, HEAD_BYTES, format_of_bytes
from itrust.data.formats.soundness import in_bytes

VARIABLE = "ITRUST_MAX_INPUT"
MAX_BYTES = 100 * 10**9
SPARE_BYTES, SPARE_SHARE = 10**9, 1 / 10  # of the disk, which others need, too: the lesser
BLOCK_BYTES = 2**20
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", re.IGNORECASE)


def spool(stream: BinaryIO, folder: Path, stem: str) -> Path:
    """Keep a stream of any known form, gzipped or not, as a file with the right ending.

    Gzipped text stays gzipped, as it is read so: it takes no more of the disk than came.
    """
    most = max_input()
    kept = folder / "kept"
    with kept.open("wb") as file:
        for block in _within(_blocks(stream), most, stem, "is larger than"):
            _refuse_full_disk(folder, stem, len(block))
            file.write(block)
    if not kept.stat().st_size:
        raise InputError("{file} is empty", file=stem)
    head = _head(kept)
    if not head.startswith(GZIP):
        return kept.rename(folder / f"{stem}{format_of_bytes(head).endings[0]}")
    try:
        return _packed(kept, folder, stem, most)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(
            "{file} cannot be read to its end ({reason}); is it whole?",
            file=stem,
            details={"reason": str(error)},
        ) from None


def max_input() -> int:
    """The most bytes that standard input may have, also unpacked; ITRUST_MAX_INPUT sets them.

    >>> max_input()
    100000000000
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return MAX_BYTES
    found = AMOUNT.fullmatch(given.strip())
    amount = float(found[1]) * UNITS[found[2].lower()] if found else math.inf
    if math.isinf(amount):  # also of very many digits
        raise InputError(
            f"{VARIABLE} must be a number of bytes such as 20GB, not {{value}}", value=given
        )
    return int(amount)


def _packed(kept: Path, folder: Path, stem: str, most: int) -> Path:
    """A gzipped file that was read to its end once, under its name; unpacked if it is no text."""
    with gzip.open(kept) as source:
        head = source.read(HEAD_BYTES)
    if head.startswith(GZIP):
        raise InputError("{file} is gzipped twice; unpack it once", file=stem)
    if not head:
        raise InputError("{file} is empty", file=stem)
    kind = format_of_bytes(head)
    with gzip.open(kept) as source:
        blocks = _within(_blocks(source), most, stem, "unpacks to more than")
        if kind.may_be_gzipped:
            for _ in blocks:  # to its checksum, within the limit
                pass
            return kept.rename(folder / f"{stem}{kind.endings[0]}.gz")
        plain = folder / f"{stem}{kind.endings[0]}"
        with plain.open("wb") as file:
            for block in blocks:
                _refuse_full_disk(folder, stem, len(block))
                file.write(block)
    kept.unlink()
    return plain


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _blocks(stream: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    while block := stream.read(BLOCK_BYTES):
        yield block


def _within(blocks: Iterator[bytes], most: int, stem: str, problem: str) -> Iterator[bytes]:
    """The same, as long as there are not too many bytes."""
    found = 0
    for block in blocks:
        found += len(block)
        if found > most:
            raise InputError(
                f"{{file}} {problem} {{most}}; name the file instead, or set {VARIABLE} to a "
                "larger number of bytes, such as 500GB",
                file=stem,
                details={"most": in_bytes(most)},
            )
        yield block


def _refuse_full_disk(folder: Path, stem: str, size: int) -> None:
    """Raise unless so many bytes more leave something of the disk for others."""
    disk = shutil.disk_usage(folder)
    if disk.free - size < min(SPARE_BYTES, SPARE_SHARE * disk.total):
        raise InputError(
            "{file} does not fit on the disk that holds temporary files: {free} are left; name the "
            "file instead, or set TMPDIR to a folder with more room",
            file=stem,
            details={"free": in_bytes(disk.free)},
        )
