"""Adapter: what findings, groups, slices and regions are about, until all of them carry `where`.

To be removed when `GroupBias`, `Slice`, `RegionPower`, `CurvePart` and `Finding` hold a
`Predicate` each; nothing else in the package asks them for anything but `where`.
"""

from __future__ import annotations

from typing import Any

from itrust.data import And, Level, Missing


def place_of(part: Any) -> str:
    """Key of the rows that a group, slice or region is about."""
    return str(getattr(part, "where", None) or part.region)


def columns_of(group: Any) -> tuple[str, ...]:
    """Columns that a group is made of."""
    region: Any = getattr(group, "where", None) or group.region
    parts: Any = region.parts if isinstance(region, And) else (region,)
    return tuple(part.name for part in parts)


def places_of(finding: Any, test: Any) -> frozenset[str]:  # noqa: ARG001
    """Keys of the groups that a finding is about."""
    parts: Any = finding.where.parts if isinstance(finding.where, And) else (finding.where,)
    return frozenset(str(part) for part in parts)


def level_key(name: str, level: object) -> str:
    """Key of the rows of one level; None stands for missing."""
    return str(Missing(name) if level is None else Level(name, level))


def leading_findings(test: Any, alpha: float) -> tuple[Any, ...]:
    """Findings that tell, once each, in which way the model is miscalibrated."""
    return tuple(test.evidence(alpha))
