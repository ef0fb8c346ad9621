"""Arrays: names of their types, and as JSON takes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]


def plain(value: Any) -> Any:
    """Turn numbers of NumPy into Python's, arrays into lists, and NaN or infinity into None.

    >>> import numpy as np
    >>> plain({"a": np.array([1.0, np.nan]), "b": (np.int64(3), "x")})
    {'a': [1.0, None], 'b': [3, 'x']}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
