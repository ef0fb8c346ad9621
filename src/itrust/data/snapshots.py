"""Files as they were when they were first looked at: what is read twice must be the same.

Nothing is read whole for it. A file is known by its size, the time of its last change and a
checksum of the bytes in which most changes show: the first and the last 64 kB, and the whole footer
of Parquet and Feather files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from itrust._core import Code, InputError
from itrust.data.formats import known_format, split_table
from itrust.data.locations import Location
from itrust.data.readers import reading

GREW = "{file} grew from {before} to {now} bytes since it was first looked at"
SHRANK = "{file} shrank from {before} to {now} bytes since it was first looked at"
REPLACED = "{file} has other content than when it was first looked at, in as many bytes"
# The bytes between may be others, which only a reading of all of them would show.
TOUCHED = "{file} was written or touched since it was first looked at (its time of change differs)"
VANISHED = "{file} has vanished since it was first looked at"
APPEARED = "{file} has appeared in {location} since the other files were first looked at"
CURE = Code(
    "scan it again when nobody writes to it, or copy it first",
    "run the command again when nobody writes to it, or copy it first",
)


@dataclass(frozen=True)
class Fingerprint:
    """What tells one state of a file from another."""

    size: int
    modified: int
    checksum: bytes

    @classmethod
    def of(cls, path: Path) -> Fingerprint:
        """Take the fingerprint of a file, and of what a database keeps beside it."""
        size = modified = 0
        told = hashlib.blake2b(digest_size=16)
        for place in belonging_to(path):
            with place.open("rb") as file:
                about = os.fstat(file.fileno())  # fresh also on file systems that keep old answers
                told.update(known_format(path).telling_bytes(file, about.st_size))
            size += about.st_size
            modified = max(modified, about.st_mtime_ns)
        return cls(size, modified, told.digest())


def belonging_to(path: Path) -> list[Path]:
    """The files that hold the rows: the file, and what a database has not put into it yet."""
    place, _ = split_table(path)
    beside = (Path(f"{place}{ending}") for ending in known_format(path).beside)
    return [place, *(other for other in beside if other.is_file() and other.stat().st_size)]


@dataclass(frozen=True)
class Snapshot:
    """Files, folders and patterns as they were at one time."""

    fingerprints: Mapping[Path, Fingerprint]
    locations: tuple[Location, ...] = ()

    @classmethod
    def of(cls, files: Iterable[Path], locations: Iterable[Location] = ()) -> Snapshot:
        """Look at files without reading them."""
        found = {}
        for path in files:
            with reading(path):
                found[path] = Fingerprint.of(path)
        return cls(found, tuple(location for location in locations if not location.is_file))

    def only(self, files: Iterable[Path]) -> Snapshot:
        """The same for some files, whatever else is in their folders."""
        return Snapshot({path: self.fingerprints[path] for path in files})

    @contextmanager
    def unchanged(self, path: Path) -> Iterator[None]:
        """Refuse a file that is not what it was before it is read, or not any more afterwards."""
        self.refuse_change(path)
        try:
            yield
        except InputError:  # a file that changed while it was read may look broken
            self.refuse_change(path)
            raise
        self.refuse_change(path)

    def refuse_changes(self) -> None:
        """Raise unless all files are what they were, and no other one has appeared."""
        self.refuse_other_files()
        for path in self.fingerprints:
            self.refuse_change(path)

    def refuse_change(self, path: Path) -> None:
        """Raise unless a file is what it was."""
        before = self.fingerprints[path]
        try:
            with reading(path):
                now = Fingerprint.of(path)
        except InputError:
            if split_table(path)[0].exists():
                raise
            raise _changed(path, VANISHED) from None
        if now != before:
            raise _changed(path, _difference(before, now), before=before.size, now=now.size)

    def refuse_writing(self, path: Path) -> None:
        """Raise if a file has another size or time than it had; next to no work."""
        before = self.fingerprints[path]
        try:
            same = (before.size, before.modified) == _size_and_time(path)
        except OSError:
            same = False
        if not same:
            self.refuse_change(path)

    def refuse_other_files(self) -> None:
        """Raise if a file has vanished from the folders and patterns, or appeared there."""
        known = {split_table(path)[0]: path for path in self.fingerprints}
        for location in self.locations:
            for file, path in known.items():
                if not file.exists():
                    raise _changed(path, VANISHED)
            new = [file for file in location.found() if file not in known]
            if new:
                raise _changed(new[0], APPEARED, location=location.text)


def _size_and_time(path: Path) -> tuple[int, int]:
    found = [place.stat() for place in belonging_to(path)]
    return sum(one.st_size for one in found), max(one.st_mtime_ns for one in found)


def _difference(before: Fingerprint, now: Fingerprint) -> str:
    if now.size != before.size:
        return GREW if now.size > before.size else SHRANK
    return TOUCHED if now.checksum == before.checksum else REPLACED


def _changed(path: Path, change: str, **details: object) -> InputError:
    return InputError(f"{change}; {{cure}}", file=str(path), details={**details, "cure": CURE})
