"""What every page needs: the chart library, and the template as Python's code."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path

from jinja2.bccache import Bucket, FileSystemBytecodeCache

from itrust._core import InputError, cache_folder, write_whole


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, behind their licences (`make charts`)."""
    kept = resources.files("itrust.render.page").joinpath("charts", "charts.js.gz")
    return gzip.decompress(kept.read_bytes()).decode("utf-8")


class CompiledTemplates(FileSystemBytecodeCache):
    """Templates as Python's code, in the user's cache folder; made each time where it is none."""

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
