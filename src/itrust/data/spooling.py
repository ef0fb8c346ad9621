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
from itrust.data.formats import GZIP, HEAD_BYTES, format_of_bytes, in_bytes, refused, unreadable

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
    spooled = folder / "spooled"
    _keep(_within(stream, stem, "is larger than"), spooled, stem)
    with spooled.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head.startswith(GZIP):
        _refuse_nothing(head, stem)
        return spooled.rename(folder / f"{stem}{format_of_bytes(head).endings[0]}")
    try:
        with gzip.open(spooled) as source:
            head = source.read(HEAD_BYTES)
        _refuse_nothing(head, stem)
        if head.startswith(GZIP):
            raise refused(stem, "{file} is gzipped twice; unpack it once")
        kind = format_of_bytes(head)
        with gzip.open(spooled) as source:
            blocks = _within(source, stem, "unpacks to more than")
            if kind.may_be_gzipped:
                for _ in blocks:  # to its checksum, within the limit
                    pass
                return spooled.rename(folder / f"{stem}{kind.endings[0]}.gz")
            plain = folder / f"{stem}{kind.endings[0]}"
            _keep(blocks, plain, stem)
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable(Path(stem), error) from None
    spooled.unlink()
    return plain


def max_input() -> int:
    """The most bytes that standard input may have, also unpacked; ITRUST_MAX_INPUT sets them.

    >>> max_input()
    100000000000
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return MAX_BYTES
    match = AMOUNT.fullmatch(given.strip())
    amount = float(match[1]) * UNITS[match[2].lower()] if match else math.inf
    if math.isinf(amount):  # also of very many digits
        raise InputError(
            f"{VARIABLE} must be a number of bytes such as 20GB, not {{value}}", value=given
        )
    return int(amount)


def _refuse_nothing(head: bytes, stem: str) -> None:
    if not head:
        raise refused(stem, "{file} is empty")


def _within(stream: BinaryIO | gzip.GzipFile, stem: str, problem: str) -> Iterator[bytes]:
    """The blocks of a stream, as long as there are not too many bytes."""
    size, most = 0, max_input()
    while block := stream.read(BLOCK_BYTES):
        size += len(block)
        if size > most:
            cure = f"name the file instead, or set {VARIABLE} to a larger number of bytes"
            raise refused(stem, f"{{file}} {problem} {in_bytes(most)}; {cure}, such as 500GB")
        yield block


def _keep(blocks: Iterator[bytes], path: Path, stem: str) -> None:
    """Write blocks, as long as they leave something of the disk for others."""
    with path.open("wb") as file:
        for block in blocks:
            disk = shutil.disk_usage(path.parent)
            if disk.free - len(block) < min(SPARE_BYTES, SPARE_SHARE * disk.total):
                place = f"the disk that holds temporary files: {in_bytes(disk.free)} are left"
                cure = "name the file instead, or set TMPDIR to a folder with more room"
                raise refused(stem, f"{{file}} does not fit on {place}; {cure}")
            file.write(block)
