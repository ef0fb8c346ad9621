"""`itrust doctor`: what is installed and what will be used; nothing is changed or downloaded."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

from itrust import __version__
from itrust._core import cache_folder, wrapped
from itrust.cli.console import answer, width
from itrust.datasets import FOLDER_VARIABLE
from itrust.engines import available_threads

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
MISSING = "MISSING"
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def examine() -> int:
    """Print what there is; 0 if the core is whole, 1 if something of it is missing."""
    core = {name: _version(name) for name in CORE}
    lines = [
        f"itrust      {__version__}",
        f"python      {platform.python_version()} on {platform.system()} {platform.machine()}",
        "core        " + ", ".join(f"{name} {found}" for name, found in core.items()),
        "extras      " + ", ".join(_extra(name, use) for name, use in EXTRAS.items()),
        f"threads     {available_threads()} of {os.cpu_count()} cores ({_variables()})",
        "blas        " + ("; ".join(dict.fromkeys(_blas())) or "not known"),
        f"data        {_data_folder()}",
        f"terminal    {shutil.get_terminal_size().columns} columns",
        "browser     not needed: pages are files",
    ]
    answer("\n".join(part for line in lines for part in wrapped(line, width(), "", " " * 12)))
    return 1 if MISSING in core.values() else 0


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return MISSING


def _extra(name: str, use: str) -> str:
    found = _version(name)
    if found == MISSING and name == "mlflow":
        found = _version("mlflow-skinny")
    return f"{name} {found}" if found != MISSING else f"{name} not installed ({use})"


def _variables() -> str:
    found = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    return ", ".join(found) or "no limit in the environment"


def _blas() -> list[str]:
    return [
        f"{pool['internal_api']} {pool.get('version') or ''}, {pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    ]


def _data_folder() -> str:
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        state = "" if Path(named).is_dir() else ", which is not there"
        return f"{named} ({FOLDER_VARIABLE}){state}"
    return f"{cache_folder()} (downloads; {FOLDER_VARIABLE} names another)"
