"""Dictionary entries: the checks that a test makes, named so that people understand them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from itrust._core import InputError, listed, place_of
from itrust.data import Everywhere, Predicate
from itrust.kernels import Constant, Kernel, LocalKernel
from itrust.terms import ColumnName, Product, Shape

# Features are as the entry says, divided by their null standard deviations, or turned so that they
# are uncorrelated under the null, with variance 1.
Scaling = Literal["stated", "standard", "whitened"]


@dataclass(frozen=True)
class Entry:
    """One check."""

    name: str
    family: str
    covariates: tuple[str, ...] = ()
    features: tuple[Product, ...] = ()
    scales: tuple[float, ...] = ()
    kernel: LocalKernel | None = None
    shape: Shape = Shape.KERNEL
    where: Predicate = field(default_factory=Everywhere)
    scaling: Scaling = "stated"
    crossed: tuple[ColumnName, ...] = ()  # columns whose regions are scanned
    direction: int = 0  # of the bias in the region that shows most

    @property
    def rank(self) -> int | None:
        """Number of features; None for a kernel and a scan of regions."""
        return len(self.features) or None

    @property
    def about(self) -> dict[str, Any]:
        """What a finding says of its check."""
        return {name: getattr(self, name) for name in ("name", "covariates", "where", "shape")}


@dataclass(frozen=True)
class Dictionary:
    """All the checks of one test, and how much weight each has.

    Parameters
    ----------
    entries : tuple of Entry
        The checks; their names differ.
    shares : mapping of str to float
        How the weight is divided between families; within a family all entries get the same.
    notes : tuple of str
        What was left out and why.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(500, rng=0).sample
    >>> d = it.default_dictionary(town)
    >>> print(d.only(families=["linear"]))
    Dictionary of 5 entries
      linear      1.00  'income: trend', 'age: trend', ... (5 in all)
    """

    entries: tuple[Entry, ...]
    shares: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.entries:
            raise InputError("a dictionary needs at least one entry", argument="entries", value=())
        (name, count), *_ = Counter(self.names).most_common(1)
        if count > 1:
            raise InputError(
                "two dictionary entries are called {value}", argument="entries", value=name
            )
        for family in self.families:
            share = self.shares.get(family, 0.0)
            if not isinstance(share, int | float) or not 0 < share < math.inf:
                problem = "family {family} needs a positive share, not {value}"
                raise InputError(problem, argument="shares", value=share, family=repr(family))

    @classmethod
    def of(cls, kernels: Mapping[str, LocalKernel | Kernel]) -> Dictionary:
        """A dictionary of named kernels; a kernel on x alone leaves the prediction out.

        Parameters
        ----------
        kernels : mapping of str to LocalKernel or Kernel
            One check for each.

        Returns
        -------
        Dictionary
            All checks in one family, with equal weights.
        """
        entries = []
        for name, kernel in kernels.items():
            if isinstance(kernel, Kernel):
                kernel = LocalKernel(Constant(), kernel)
            if not isinstance(kernel, LocalKernel):
                raise InputError(
                    "dictionary entry {name} must be a kernel such as LocalKernel(...) or "
                    "RBF(10).on('age'), not {value}",
                    argument="kernel",
                    value=kernel,
                    name=repr(name),
                )
            entries.append(Entry(str(name), "own", kernel=kernel))
        return cls(tuple(entries), {"own": 1.0})

    @classmethod
    def of_one(cls, kernel: LocalKernel, covariates: tuple[str, ...]) -> Dictionary:
        """A dictionary of one check: a single kernel on all covariates.

        Parameters
        ----------
        kernel : LocalKernel
            The kernel.
        covariates : tuple of str
            Names of the covariates.

        Returns
        -------
        Dictionary
            With one entry, "kernel".
        """
        return cls((Entry("kernel", "own", covariates, kernel=kernel),), {"own": 1.0})

    @property
    def families(self) -> tuple[str, ...]:
        """Families that have entries, in order."""
        return tuple(dict.fromkeys(entry.family for entry in self.entries))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries."""
        return tuple(entry.name for entry in self.entries)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the covariates that entries read."""
        return tuple(dict.fromkeys(name for entry in self.entries for name in entry.covariates))

    def weights(self) -> tuple[float, ...]:
        """Give the weight of each entry.

        Returns
        -------
        tuple of float
            In the order of the entries; they sum to 1.
        """
        facts = self.to_dict()
        weight = {family: own["share"] / own["entries"] for family, own in facts.items()}
        return tuple(weight[entry.family] for entry in self.entries)

    def only(
        self, *, families: Iterable[str] | None = None, covariates: Iterable[str] | None = None
    ) -> Dictionary:
        """Keep entries of these families that read no other covariates than these.

        Parameters
        ----------
        families : iterable of str, optional
            Names of families; default: all.
        covariates : iterable of str, optional
            Names of covariates; default: all.

        Returns
        -------
        Dictionary
            With fewer entries.
        """
        kept = self.entries
        if families is not None:
            wanted = _known(families, self.families, "family")
            kept = tuple(entry for entry in kept if entry.family in wanted)
        if covariates is not None:
            wanted = _known(covariates, self.covariates, "covariate")
            kept = tuple(entry for entry in kept if wanted.issuperset(entry.covariates))
        return replace(self, entries=kept)

    def without(
        self, *, families: Iterable[str] = (), covariates: Iterable[str] = ()
    ) -> Dictionary:
        """Leave out entries of these families and those that read these covariates.

        Parameters
        ----------
        families : iterable of str
            Names of families.
        covariates : iterable of str
            Names of covariates.

        Returns
        -------
        Dictionary
            With fewer entries.
        """
        left_out = _known(families, self.families, "family")
        unseen = _known(covariates, self.covariates, "covariate")
        kept = (
            entry
            for entry in self.entries
            if entry.family not in left_out and unseen.isdisjoint(entry.covariates)
        )
        return replace(self, entries=tuple(kept))

    def weighted(self, **shares: float) -> Dictionary:
        """Change the shares of some families; write spaces in names as underscores.

        Parameters
        ----------
        **shares : float
            New shares by family. They are relative: what counts is their ratio.

        Returns
        -------
        Dictionary
            With the same entries and other weights.
        """
        named = {family.replace("_", " "): share for family, share in shares.items()}
        _known(named, self.families, "family")
        return replace(self, shares={**self.shares, **named})

    def to_dict(self) -> dict[str, Any]:
        """Give the families with their shares and numbers of entries, ready for JSON.

        Returns
        -------
        dict
            By family: "share" of the weight and number of "entries".
        """
        count = Counter(entry.family for entry in self.entries)
        total = sum(self.shares[family] for family in count)
        return {
            family: {"share": self.shares[family] / total, "entries": count[family]}
            for family in self.families
        }

    def __str__(self) -> str:
        width = max(10, *(len(family) for family in self.families))
        lines = []
        for family, facts in self.to_dict().items():
            names = listed([entry.name for entry in self.entries if entry.family == family], 2)
            lines.append(f"  {family:<{width}}  {facts['share']:.2f}  {names}")
        return "\n".join([f"Dictionary of {len(self.entries):,} entries", *lines])

    def __repr__(self) -> str:
        return f"<Dictionary: {len(self.entries):,} entries in {len(self.families)} families>"


def _known(names: Iterable[str], known: Collection[str], what: str) -> set[str]:
    wanted = {names} if isinstance(names, str) else set(names)
    for name in wanted:
        problem = "the dictionary has no {what} {value}; {guess}"
        place_of(name, list(known), problem, argument="names", what=what)
    return wanted
