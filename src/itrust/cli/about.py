"""What the command tells of itself: `itrust tasks`, the grammar, and `itrust doctor`."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from itrust import __version__
from itrust._core import cache_folder, wrapped
from itrust.cli.command import NARROW
from itrust.cli.console import answer, width
from itrust.tasks import parser as grammar

GRAMMAR = {
    "": {
        "mean(age)": "mean age among positives",
        'mean(age | race == "b")': "the same in one group",
        "share(age >= 65)": "share of positives who are 65 or over",
        'prevalence(region == "south")': "rate of positives in the south",
        "prevalence()": "rate of positives among all rows",
        'mean(age | race == "b") - mean(age | race == "w")': "a gap between groups",
        'prevalence(region == "south") / prevalence()': "a ratio",
        "mean(age) ~ 0.5": "a bias of 0.5 would matter: the tolerance",
        "Age of owners: mean(age) ~ 0.5": "with a title to be shown by",
        "mean(log(income))": "formulas: + - * / **, log, log10, exp, sqrt, abs",
    },
    "Of several classes every number names its own:": {
        'prevalence("tie" | region == "south")': "rate of one class in the south",
        'mean(age | y == "tie")': "mean age among rows of one class; y is the label",
    },
    "Regressions of the label on covariates:": {
        "coef(age ; age + income)": "coefficient of age in a logistic regression",
        'coef(race["b"] ; age + race)': "of one level, against the first one",
        'coef(race["b"] ; age + race against "w")': "against another level",
        "coef(age ; age + income ; identity)": "differences of rates; log: logs of ratios of rates",
        "coef(age:urban ; age + urban + age:urban)": "an interaction",
        'coef(age ; age | region == "south")': "among some rows",
    },
    "Conditions:": {
        'race == "b"': "also != < <= > >=",
        'region in ("south", "west")': "also not in",
        "income is missing": "also is not missing",
        'seen >= "2026-01-31"': "text and dates stand in quotes",
        "`hours per week` > 40": "names with blanks or hyphens stand in backticks",
        'not (age < 40 or race == "b")': "and, or, not, parentheses",
    },
}
INTRODUCTION = (
    "A task is the number you want to report. The audit computes it with probabilities and with "
    "labels, and says whether they differ. Means and shares are among positives."
)
SHELL = "In a shell, put the whole task between single quotes:"
COMMAND = "  itrust audit homes.csv --on age,race --task 'mean(age | race == \"b\")'"
LAST = "'itrust tasks EXPR' reads one task and says what it is."


CORE = (
    *("numpy", "scipy", "scikit-learn", "pyarrow", "narwhals", "matplotlib", "rich", "click"),
    *("requests", "threadpoolctl"),
)
EXTRAS = {
    "distributed": "engines.Dask",
    "pandas": "frames",
    "polars": "frames",
    "mlflow": "the evaluator of MLflow",
    "torch": "losses",
    "pyreadstat": "Stata and SPSS files",
    "fastexcel": "Excel files",
}
MISSING, NO_LIMIT = "MISSING", "no limit in the environment"
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def explain(expression: str | None) -> None:
    """Tell the grammar, or what one expression means."""
    answer("\n".join(_grammar() if expression is None else _one(expression)))


def _grammar() -> list[str]:
    columns = width()
    lines = wrapped(INTRODUCTION, columns)
    for heading, examples in GRAMMAR.items():
        lines += ["", *([heading] if heading else []), *_pairs(examples, columns)]
    # The command is whole: one that is broken up cannot be copied.
    return [*lines, "", *wrapped(SHELL, columns), COMMAND, "", *wrapped(LAST, columns)]


def _pairs(pairs: dict[str, str], columns: int) -> list[str]:
    """Examples beside their meaning, or above it where either needs the room."""
    lines = []
    for example, meaning in pairs.items():
        beside = f"  {example:<31} {meaning}"
        if columns >= NARROW and len(example) <= 31 and len(beside) <= columns:
            lines.append(beside)
        else:
            lines += [f"  {example}", *wrapped(meaning, columns, "      ")]
    return lines


def _one(expression: str) -> list[str]:
    task = grammar.parse(expression)
    said = [f"read as  {task.formula}", f"columns  {', '.join(sorted(task.names)) or 'none'}"]
    return [line for text in said for line in wrapped(text, width(), "", " " * 9)]


def examine() -> int:
    """Print what there is; 0 if the core is whole, 1 if something of it is missing."""
    from threadpoolctl import threadpool_info

    from itrust.datasets import FOLDER_VARIABLE
    from itrust.engines import available_threads

    core = {name: _version(name) for name in CORE}
    limits = ", ".join(f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ)
    libraries = [
        f"{pool['internal_api']} {pool.get('version') or ''}, {pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    ]
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        lacking = "" if Path(folder).is_dir() else ", which is not there"
        data = f"{folder} ({FOLDER_VARIABLE}){lacking}"
    else:
        data = f"{cache_folder()} (downloads; {FOLDER_VARIABLE} names another)"
    lines = [
        f"itrust      {__version__}",
        f"python      {platform.python_version()} on {platform.system()} {platform.machine()}",
        f"core        {', '.join(f'{name} {number}' for name, number in core.items())}",
        f"extras      {', '.join(_extra(name, use) for name, use in EXTRAS.items())}",
        f"threads     {available_threads()} of {os.cpu_count()} cores ({limits or NO_LIMIT})",
        f"blas        {'; '.join(dict.fromkeys(libraries)) or 'not known'}",
        f"data        {data}",
    ]
    answer("\n".join(part for line in lines for part in wrapped(line, width(), "", " " * 12)))
    return 1 if MISSING in core.values() else 0


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return MISSING


def _extra(name: str, use: str) -> str:
    number = _version(name)
    if number == MISSING and name == "mlflow":
        number = _version("mlflow-skinny")
    return f"{name} {number}" if number != MISSING else f"{name} not installed ({use})"
