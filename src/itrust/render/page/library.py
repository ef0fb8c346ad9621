"""What a page takes long to make: made once for each installed version, then kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from jinja2.bccache import Bucket, FileSystemBytecodeCache

from itrust._core import InputError, cache_folder, write_whole

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


class CompiledTemplates(FileSystemBytecodeCache):
    """Templates as Python's code, in the user's cache folder; made each time where it is none.

    Parameters
    ----------
    settings : mapping
        Of the environment, which the code depends on.
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        made_with = hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()[:8]
        super().__init__(str(cache_folder()), f"page-{made_with}-%s.cache")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what was kept, if it is of the same source and versions."""
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code, where that is allowed."""
        place = Path(self.directory) / (self.pattern % (bucket.key,))
        with suppress(OSError, InputError):
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, bucket.bytecode_to_string())


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
