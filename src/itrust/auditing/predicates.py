"""Adapter: what findings, groups, slices and regions are about, until all of them carry `where`.

To be removed when `GroupBias`, `Slice`, `RegionPower` and `Finding` hold a `Predicate` each, named
`where`; nothing else in the package asks them for anything but that.
"""

from __future__ import annotations

from typing import Any

from itrust.data import Level, Missing, Predicate


def _where(part: Any) -> Any:
    return getattr(part, "where", None) or part.region


def place_of(part: Any) -> str:
    """Key of the rows that a group, slice or region is about."""
    return str(_where(part))


def columns_of(group: Any) -> tuple[str, ...]:
    """Columns that a group is made of."""
    return tuple(sorted(_where(group).names))


def places_of(finding: Any, test: Any) -> frozenset[str]:
    """Keys of the groups that a finding is about."""
    where = getattr(finding, "where", None)
    if where is not None:
        return frozenset(str(leaf) for leaf in where.leaves())
    entry = next(entry for entry in test.dictionary.entries if entry.name == finding.name)
    if len(entry.features) != 1:
        return frozenset()
    terms = [term for term in entry.features[0] if hasattr(term, "level")]
    return frozenset(str(_level(term.column, term.level)) for term in terms)


def _level(name: str, level: object) -> Predicate:
    return Missing(name) if level == "(missing)" else Level(name, level)


def leading_findings(test: Any, alpha: float) -> tuple[Any, ...]:
    """Findings that tell, once each, in which way the model is miscalibrated."""
    return tuple(getattr(test, "story", lambda _: ())(alpha))
