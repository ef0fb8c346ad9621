"""Files are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from itrust._core.errors import InputError


def write_whole(path: Path, text: str) -> Path:
    """Write beside the place first, then move in; on failure the old file stays as it was."""
    beside = path.with_name(f".itrust-{secrets.token_hex(8)}.part")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(beside, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)  # gone already where all went well
    return path
