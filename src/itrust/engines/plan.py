"""How one kernel will be evaluated, and what for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from itrust._core import Advance, FloatArray
from itrust.data import Points
from itrust.engines.moments import NullMoments
from itrust.engines.outcome import Columns, KernelOutcome
from itrust.engines.passes import Additive, Work
from itrust.engines.survey import Survey
from itrust.kernels import LocalKernel
from itrust.nulls import Null

BATCH_BYTES = 2**26  # of the numbers kept for a batch of draws; every chunk in work has as many
MIN_COLUMNS = 256


@dataclass(frozen=True)
class Purpose:
    """What a kernel is evaluated for; engines choose by it."""

    null: Null | None = None
    draws: int = 0
    among_many: bool = False
    is_main: bool = True


class Plan(ABC):
    """How one kernel will be evaluated; made by an engine without labels."""

    kernel: LocalKernel

    @property
    @abstractmethod
    def work(self) -> Work | None:
        """What a pass over the rows adds up; None where all rows are needed at once."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Numbers that are kept for each draw, beside the residuals of all rows."""

    @abstractmethod
    def moments(self, survey: Survey) -> NullMoments:
        """Give moments of the form under the null, from what the survey knows.

        A plan that takes the kernel as it is asks all rows; one with features asks the pilot rows.
        """

    @abstractmethod
    def can_vary(self, moments: NullMoments) -> bool:
        """Tell whether the form differs between draws."""

    @abstractmethod
    def matrix(self, points: Points) -> FloatArray:
        """Give kernel values of some points as this plan has them."""

    @abstractmethod
    def outcome(
        self,
        sums: Additive | None,
        columns: Columns | None,
        *,
        diagonals: bool,
        advance: Advance | None,
    ) -> KernelOutcome:
        """Give the form of the data and of every draw."""

    @abstractmethod
    def describe(self) -> str:
        """The plan in a few words."""


def amount_of_work(survey: Survey, plans: Sequence[Plan], works: Sequence[Work] = ()) -> int:
    """Give the number of rows that one `run` reports."""
    apart = sum(plan.work is None for plan in plans)
    passes = bool(works) or apart < len(plans)
    return survey.n * (int(passes) + apart)


def columns_at_once(survey: Survey, plans: Sequence[Plan], others: int = 0) -> int:
    """Give the number of draws that fit into memory at a time."""
    rows = others + 1 + sum(plan.rank for plan in plans)
    if any(plan.work is None for plan in plans):
        rows += survey.n
    return max(MIN_COLUMNS, BATCH_BYTES // (8 * rows))
