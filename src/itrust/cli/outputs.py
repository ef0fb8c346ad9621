"""Output files: places are checked before the work, and all is written after it."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from itrust._core import InputError, Write, writer_of
from itrust.cli.console import answer, results, say
from itrust.cli.options import BY_KEY, STANDARD, Kind, Options

TODAY = "today"  # of --date


def refuse_odd_values(options: Options) -> None:
    """Raise on text that is none, and on names of files that are empty, of folders, or no use."""
    names = ("FILE",) if options.population is None else ("LABELLED", "POPULATION")
    files = zip(names, (options.file, options.population), strict=False)
    for name, value in {**dict(files), **options.values}.items():
        option = BY_KEY.get(name)
        is_file = option is None or option.is_file
        written = option if option is not None and option.kind is Kind.WRITTEN else None
        for text in value if isinstance(value, list | tuple) else [value]:
            problem = ""
            if not isinstance(text, str):
                continue
            if is_file and not text:
                problem = " names no file: its value is empty"
            elif written and text.endswith((os.sep, f"{os.sep}.")) and not os.path.isdir(text):
                problem = ": there is no folder {value}"  # of that name: paths drop such an ending
            elif any("\ud800" <= sign <= "\udfff" for sign in text):  # bytes that are no text
                cure = "; rename the file" if is_file else ""
                problem = f" must be UTF-8 text, not {{value}}{cure}"
            elif written and text == STANDARD and not written.streams:
                problem = " cannot go to standard output; name a file"
            if problem:
                raise InputError(f"{{argument}}{problem}", argument=name, value=text)


def refuse_bad_places(options: Options, inputs: Iterable[Path | None] = ()) -> None:
    """Raise unless every output can be written and destroys nothing that is read."""
    read = {os.path.realpath(path) for path in (options.settings, *inputs) if path is not None}
    seen: dict[str, str] = {}
    for option, path in options.outputs.items():
        if path is None:
            continue
        try:
            place = os.path.realpath(path)
            problem = _problem(path)
        except OSError as error:  # a loop of links, a name too long, a folder that is gone
            place, problem = "", f": {{path}} cannot be written: {error.strerror}"
        if place in read:
            problem = " would overwrite {path}, which is read"
        if place in seen:
            option, problem = f"{seen[place]} and {option}", " are the same file, {path}"
        if problem:
            details = {"path": path, "folder": repr(str(_folder(path)))}
            raise InputError(f"{option}{problem}", details=details)
        seen[place] = option


def _problem(path: Path) -> str:
    """Why a file cannot be written, as far as it can be told before."""
    about = None
    with suppress(FileNotFoundError, NotADirectoryError):
        about = os.stat(path)
    if about is not None and stat.S_ISDIR(about.st_mode):
        return ": {path} is a folder; name a file in it"
    folder = _folder(path)
    if not os.path.isdir(folder):
        return ": there is no folder {folder}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return ": the folder {folder} cannot be written to"
    if about is None:
        return ""
    if not stat.S_ISREG(about.st_mode):
        return ": {path} is not an ordinary file"
    for name, stream in {"output": results(), "error": sys.stderr}.items():
        with suppress(OSError, ValueError, AttributeError):  # a stream that is no file
            if os.path.samestat(about, os.fstat(stream.fileno())):
                return f" is where standard {name} goes, {{path}}; name another file"
    return ""


def _folder(path: Path) -> Path:
    return Path(os.path.realpath(path) if os.path.islink(path) else path).parent


@contextmanager
def at_work(*modules: str) -> Iterator[None]:
    """Load what works, then let BLAS have one thread, as small products wait for others."""
    for name in modules:
        import_module(name)
    from itrust.engines import one_blas_thread

    with one_blas_thread():
        yield


def dated(options: Options) -> dict[str, Any]:
    """The words for the page; today's date by its digits, so that the same command gives it."""
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    date = today if options.date == TODAY else options.date
    return {"title": options.title, "model": options.model, "date": date}


def as_json(facts: Mapping[str, Any]) -> str:
    """The text of the file of `--json`."""
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def writers(options: Options, **texts: Callable[[], str]) -> dict[Path, Write]:
    """What to write where, by option; all of it renders the same values."""
    places = {name: options.outputs.get(f"--{name}") for name in texts}
    return {path: writer_of(texts[name]) for name, path in places.items() if path is not None}


def tell(options: Options, facts: Callable[[], Mapping[str, Any]], *told: tuple[str, ...]) -> None:
    """Write the result, as JSON or as texts with their colour, and say which files are there."""
    if options.json == STANDARD:
        answer(as_json(facts()).rstrip("\n"))
    else:
        for words in told:
            answer(*words)
    say(options, *(f"{option[2:]} in {path}" for option, path in options.outputs.items() if path))
