"""Adapter: what findings, groups, slices and regions are about, until all of them carry `where`.

To be removed when `GroupBias`, `Slice`, `RegionPower`, `CurvePart` and `Finding` hold a
`Predicate` each; nothing else in the package asks them for anything but `where`.
"""

from __future__ import annotations

from typing import Any

from itrust.data import Every, Level


def place_of(part: Any) -> str:
    """Key of the rows that a group, slice or region is about."""
    return str(getattr(part, "where", None) or part.region)


def columns_of(group: Any) -> tuple[str, ...]:
    """Columns that a group is made of."""
    region: Any = group.region
    conditions: Any = region.conditions if isinstance(region, Every) else (region,)
    return tuple(condition.name for condition in conditions)


def places_of(finding: Any, test: Any) -> frozenset[str]:
    """Keys of the groups that a finding is about."""
    entry = next(entry for entry in test.dictionary.entries if entry.name == finding.name)
    if len(entry.features) != 1:
        return frozenset()
    levels = [(term.column, term.level) for term in entry.features[0] if hasattr(term, "level")]
    return frozenset(level_key(name, level) for name, level in levels)


def level_key(name: str, level: object) -> str:
    """Key of the rows of one level; None stands for missing."""
    return str(Level(name, level))


def leading_findings(test: Any, alpha: float) -> tuple[Any, ...]:
    """Findings that tell, once each, in which way the model is miscalibrated."""
    return tuple(getattr(test, "story", lambda _: ())(alpha))
