"""The chart library of the page: made once for each installed version, then kept on disk."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from itrust._core import InputError, write_whole

ENTRANCE = "window.vegaEmbed = vegaEmbed;"


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed from the installed package, as one script.

    Bundling takes seconds, so the script stays in the user's cache folder (that of downloaded
    data sets); where nothing can be written there, it is made each time.
    """
    place = cache_folder() / f"charts-{version('vl-convert-python')}.js"
    kept = _kept(place)
    if kept is not None:
        return kept
    made = _bundled()
    with suppress(OSError, InputError):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, f"{_checksum(made)}\n{made}")
    return made


def cache_folder() -> Path:
    """Where downloads and the script are kept."""
    import pooch  # slow to load, and not needed before a page is made

    return Path(pooch.os_cache("itrust"))


def _bundled() -> str:
    import vl_convert  # 84 MB, and not needed before a page is made

    return str(vl_convert.javascript_bundle(ENTRANCE))


def _kept(place: Path) -> str | None:
    """The script that was kept, unless it is not there or not whole."""
    try:
        checksum, script = place.read_bytes().decode("utf-8").split("\n", 1)
    except (OSError, ValueError):
        return None
    return script if checksum == _checksum(script) else None


def _checksum(script: str) -> str:
    """Of the script and the line that makes it reachable."""
    return hashlib.sha256(f"{ENTRANCE}\n{script}".encode()).hexdigest()
