"""Where files are kept that can be made or fetched again."""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_cache_dir


def cache_folder() -> Path:
    """The user's folder for data sets and the compiled template of the page."""
    return Path(user_cache_dir("itrust"))
