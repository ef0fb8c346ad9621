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
    """What a kernel is evaluated for; engines choose by it.

    Attributes
    ----------
    null : Null or None
        The null that the statistic is compared with; None where the statistic alone is wanted.
    draws : int
        How many draws the null makes; 0 for a formula.
    among_many : bool
        Whether many kernels are tested together, so that each should cost little.
    is_main : bool
        Whether the kernel gives the reported statistic; others lend power alone.
    """

    null: Null | None = None
    draws: int = 0
    among_many: bool = False
    is_main: bool = True


class Plan(ABC):
    """How one kernel will be evaluated; made by an engine without labels.

    Attributes
    ----------
    kernel : LocalKernel
        The kernel with its widths.
    """

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

        Parameters
        ----------
        survey : Survey
            That the plan was made for; the pilot rows are in it.

        Returns
        -------
        NullMoments
            Of one form.
        """

    @abstractmethod
    def can_vary(self, moments: NullMoments) -> bool:
        """Tell whether the form differs between draws.

        Parameters
        ----------
        moments : NullMoments
            From `moments`.

        Returns
        -------
        bool
            False where a test could not detect anything.
        """

    @abstractmethod
    def matrix(self, points: Points) -> FloatArray:
        """Give kernel values of some points as this plan has them.

        Parameters
        ----------
        points : Points
            Any n rows.

        Returns
        -------
        (n, n) array
            Dense, so for few points only.
        """

    @abstractmethod
    def outcome(
        self,
        sums: Additive | None,
        columns: Columns | None,
        *,
        diagonals: bool,
        advance: Advance | None,
    ) -> KernelOutcome:
        """Give the form of the data and of every draw.

        Parameters
        ----------
        sums : Additive or None
            What the pass has added up for `work`.
        columns : Columns or None
            The residuals of all rows, where `work` is None.
        diagonals : bool
            Whether the diagonal terms are wanted, too.
        advance : callable or None
            Told the number of rows done.

        Returns
        -------
        KernelOutcome
            Forms and what they tell about the null.
        """

    @abstractmethod
    def describe(self) -> str:
        """The plan in a few words."""


def amount_of_work(survey: Survey, plans: Sequence[Plan], works: Sequence[Work] = ()) -> int:
    """Give the number of rows that one `run` reports.

    Parameters
    ----------
    survey : Survey
        How many rows there are.
    plans : sequence of Plan
        One round for each that needs all rows at once.
    works : sequence of Work
        One round for all of them and all other plans.

    Returns
    -------
    int
        Rows times rounds.
    """
    apart = sum(plan.work is None for plan in plans)
    passes = bool(works) or apart < len(plans)
    return survey.n * (int(passes) + apart)


def columns_at_once(survey: Survey, plans: Sequence[Plan], others: int = 0) -> int:
    """Give the number of draws that fit into memory at a time.

    Parameters
    ----------
    survey : Survey
        How many rows there are.
    plans : sequence of Plan
        What is kept for each draw.
    others : int
        Further numbers that are kept for each draw.

    Returns
    -------
    int
        At least 256.
    """
    rows = others + 1 + sum(plan.rank for plan in plans)
    if any(plan.work is None for plan in plans):
        rows += survey.n
    return max(MIN_COLUMNS, BATCH_BYTES // (8 * rows))
