"""Output files: places are checked before the work, and all is written after it."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from itrust._core import InputError, Write, writer_of
from itrust.cli.console import Log, after_writing, answer, results
from itrust.cli.exit import load
from itrust.cli.options import BY_KEY, Kind, Options

TODAY = "today"  # of --date

MAX_SHOWN = 200  # characters of a path
DESCRIPTOR = re.compile(r"/dev/(fd/.*|std(in|out|err))|/proc/.*/fd/.*", re.DOTALL)


def refuse_odd_values(options: Options) -> None:
    """Raise on text that is none, and on names of files that are empty, of folders, or no use."""
    names = ("FILE",) if options.population is None else ("LABELLED", "POPULATION")
    files = zip(names, (options.file, options.population), strict=False)
    given: dict[str, Any] = {**dict(files), **options.values}
    for name, value in given.items():
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str):
                _refuse_odd_text(name, text)
        option = BY_KEY.get(name)
        is_page = option is not None and option.kind is Kind.WRITTEN and not option.streams
        if is_page and options.on_standard_output(name):
            problem = "{argument} cannot go to standard output; name a file"
            raise InputError(problem, argument=name)


def _refuse_odd_text(name: str, text: str) -> None:
    option = BY_KEY.get(name)
    is_file = option is None or option.is_file
    if is_file and not text:
        raise InputError("{argument} names no file: its value is empty", argument=name)
    # An ending as a folder has, which there is not: paths drop it.
    as_folder = os.path.basename(text) in ("", ".") and not os.path.isdir(text)
    if option is not None and option.kind is Kind.WRITTEN and as_folder:
        folder = os.path.dirname(text).rstrip(os.sep)
        raise InputError("{argument}: there is no folder {value}", argument=name, value=folder)
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes of the command line that Python could not read
        problem = f"{{argument}} must be UTF-8 text, not {{value}}{'; rename the file' * is_file}"
        raise InputError(problem, argument=name, value=text) from None


def refuse_bad_places(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Raise unless every output can be written and destroys nothing that is read."""
    read = {os.path.realpath(path) for path in inputs if path is not None}
    seen: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        about = None
        try:
            place = os.path.realpath(path)
            with suppress(FileNotFoundError, NotADirectoryError):
                about = os.stat(path)
        except OSError as error:  # a loop of links, a name too long, a folder that is gone
            problem = f": {{path}} cannot be written: {error.strerror}"
            raise _refused(option, path, problem) from None
        if DESCRIPTOR.fullmatch(str(path)):  # number 1 leads elsewhere than the shell was told
            streams = BY_KEY[option.removeprefix("--")].streams
            cure = "name - for standard output" if streams else "name a file"
            raise _refused(option, path, f": {cure}, not {{path}}")
        if place in read:
            raise _refused(option, path, " would overwrite {path}, which is read")
        if place in seen:
            raise _refused(f"{seen[place]} and {option}", path, " are the same file, {path}")
        seen[place] = option
        problem = _problem(path, about)
        if problem:
            raise _refused(option, path, problem)


def _problem(path: Path, about: os.stat_result | None) -> str:
    """Why a file cannot be written, as far as it can be told before."""
    if about is not None and stat.S_ISDIR(about.st_mode):
        return ": {path} is a folder; name a file in it"
    folder = _folder(path)
    if not os.path.isdir(folder):
        return ": there is no folder {folder}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return ": the folder {folder} cannot be written to"
    if about is not None and not stat.S_ISREG(about.st_mode):
        return ": {path} is not an ordinary file"
    for name, stream in {"output": results(), "error": sys.stderr}.items():
        if about is not None and _goes_to(stream, about):
            return f" is where standard {name} goes, {{path}}; name another file"
    return ""


def _folder(path: Path) -> Path:
    return Path(os.path.realpath(path) if os.path.islink(path) else path).parent


def _goes_to(stream: TextIO, about: os.stat_result) -> bool:
    try:
        return os.path.samestat(about, os.fstat(stream.fileno()))
    except (OSError, ValueError):  # a stream that is no file
        return False


def _refused(option: str, path: Path, problem: str) -> InputError:
    details = {"path": _cut(str(path)), "folder": _cut(repr(str(_folder(path))))}
    return InputError(f"{option}{problem}", details=details)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


@contextmanager
def told_in_the_result() -> Iterator[None]:
    """Python's warnings off: the page and the JSON hold the same sentences."""
    import itrust as it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        warnings.simplefilter("ignore", it.ApproximationWarning)
        yield


@contextmanager
def working(options: Options, *modules: str) -> Iterator[None]:
    """Load what works, and what writes; BLAS has one thread, as small products wait for others."""
    page = ["itrust.render.page"] if options.values.get("report") is not None else []
    load(*modules, "itrust.render.text", *page)
    from itrust.engines import one_blas_thread

    with one_blas_thread():
        yield


def dated(options: Options) -> dict[str, Any]:
    """The words for the page; today's date by its digits, so that the same command gives it."""
    date = options.date
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    return {
        "title": options.title,
        "model": options.model,
        "date": today if date == TODAY else date,
    }


def as_json(facts: Mapping[str, Any]) -> str:
    """The text of the file of `--json`."""
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def writers(options: Options, **texts: Callable[[], str]) -> dict[Path, Write]:
    """What to write where, by option; all of it renders the same values."""
    places = {name: options.outputs.get(f"--{name}") for name in texts}
    return {path: writer_of(texts[name]) for name, path in places.items() if path is not None}


def tell(
    options: Options, facts: Callable[[], Mapping[str, Any]], *told: tuple[str, ...], log: Log
) -> None:
    """Write the result, as JSON or as texts with their colour, and say which files are there."""
    with after_writing(options.outputs.values()):
        if options.on_standard_output("json"):
            answer(as_json(facts()).rstrip("\n"))
        else:
            for words in told:
                answer(*words)
    log.say(*(f"{option[2:]} in {path}" for option, path in options.outputs.items() if path))
