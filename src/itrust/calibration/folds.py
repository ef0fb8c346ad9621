"""How rows are divided between learning and testing, and how the folds' p-values are combined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import chdtrc

from itrust._core import FloatArray, checked_count


@dataclass(frozen=True)
class Folds(ABC):
    """How rows are divided between learning and testing.

    Parameters
    ----------
    number : int
        Number of folds.
    """

    number: int = 5
    meaning: ClassVar[str]

    def __post_init__(self) -> None:
        checked_count(self.number, "folds", at_least=2)

    def roles(self) -> Iterator[tuple[Sequence[int], int]]:
        """Give the folds to learn from and the fold to test on, in turn.

        Returns
        -------
        iterator
            Of pairs: numbers of the folds to learn from, number of the fold to test on.
        """
        return self._roles()

    def combined(self, pvalues: FloatArray) -> float:
        """Combine the p-values of all tested folds into one.

        Parameters
        ----------
        pvalues : (k,) array
            One for each tested fold.

        Returns
        -------
        float
            Valid if each of them is.
        """
        return self._combined(pvalues)

    @abstractmethod
    def _roles(self) -> Iterator[tuple[Sequence[int], int]]: ...

    @abstractmethod
    def _combined(self, pvalues: FloatArray) -> float: ...


@dataclass(frozen=True)
class Forward(Folds):
    """Learn from the folds before k, test on k; Fisher's combination.

    Each p-value is valid given all folds before it, which is what Fisher's sum needs.

    Parameters
    ----------
    number : int
        Number of folds, of which all but the first are tested on.
    """

    meaning: ClassVar[str] = "learned from the folds before, combined by Fisher's sum"

    def _roles(self) -> Iterator[tuple[Sequence[int], int]]:
        return ((range(k), k) for k in range(1, self.number))

    def _combined(self, pvalues: FloatArray) -> float:
        return float(chdtrc(2 * pvalues.size, -2 * np.log(pvalues).sum()))


@dataclass(frozen=True)
class Across(Folds):
    """Learn from all other folds, test on k; the smallest p-value times the number of folds.

    The p-values depend on each other (a witness has seen the labels that another is tested
    on), so sums of them are not valid; Bonferroni's bound is.

    Parameters
    ----------
    number : int
        Number of folds; each is tested on once.
    """

    meaning: ClassVar[str] = "learned from all other folds, smallest p-value times their number"

    def _roles(self) -> Iterator[tuple[Sequence[int], int]]:
        everyone = range(self.number)
        return (([j for j in everyone if j != k], k) for k in everyone)

    def _combined(self, pvalues: FloatArray) -> float:
        return min(1.0, pvalues.size * float(pvalues.min()))
