"""What the data would look like if the model were right: the two kinds of null distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar

from itrust.kernels.grams import Gram
from itrust.sample import Sample
from itrust.typing import FloatArray


class Null(ABC):
    """A way to judge the statistic. `exact`: valid at every sample size, not only in the limit."""

    exact: ClassVar[bool]
    meaning: ClassVar[str]
    is_local_calibration: ClassVar[bool] = True  # the nulls of the paper's code are another's

    def to_dict(self) -> dict[str, Any]:
        """Name, settings and whether it is exact, ready for JSON."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"null": type(self).__name__, "exact": self.exact, **settings}


class SimulatedNull(Null):
    """A null that makes residuals again; draw b of row i depends on (seed, i, b) alone."""

    @abstractmethod
    def fill(self, out: FloatArray, sample: Sample, draws: range, seed: int) -> None:
        """Write unweighted residuals under the null into `out`, shape (n, len(draws))."""


class AnalyticNull(Null):
    """A null whose tail is a formula."""

    depth: ClassVar[float]  # p-values below this are reported as "below", not as a number

    @abstractmethod
    def tail(self, statistic: float, sample: Sample, gram: Gram, supremum: float) -> float:
        """Probability, or a bound on it, of a KLCE^2 at least as large."""
