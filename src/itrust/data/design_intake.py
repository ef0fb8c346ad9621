"""How rows were drawn, from what users bring: clusters, strata, weights and replicate weights.

A sample as it was drawn must allow a variance: clusters that lie in one stratum, and two or more in
each. Parts of a sample need not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import (
    AnyArray,
    Argument,
    BoolArray,
    Code,
    FloatArray,
    InputError,
    IntArray,
    Row,
    Setting,
    Subject,
    counted,
    in_door_words,
    shown,
)
from itrust.data.design import Design, Replication
from itrust.data.encoding import (
    as_arrow,
    columns_of,
    encode_numbers,
    is_frame,
    levels_and_codes,
    refuse_missing_rows,
    refuse_rows,
    same_length,
)
from itrust.data.selection import as_arrays, lacking_in, taken

CLUSTER, STRATA, WEIGHTS = "cluster", "strata", "weights"
REPLICATES, METHOD = "replicate_weights", "replicate_method"
BITS = np.uint64(2**63 - 1)
MIXERS = tuple(np.uint64(value) for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9))
CERTAINTY = (
    "; if it was sure to be drawn (a certainty unit), give its rows or lower units as clusters"
)
NAME_THE_METHOD = (
    "say what made the replicate weights with {settings}, or jk1, jk2, brr, sdr, bootstrap"
)
MIN_MEAN, MAX_MEAN = 0.5, 2.0  # of replicate weights where every row has weight 1


@dataclass(frozen=True, eq=False)
class Ids:
    """Which unit each row belongs to, by one column or by several that are crossed."""

    # Of each its name, if any, the values that occur, and the place of each row's among them.
    columns: tuple[tuple[str | None, tuple[Any, ...], AnyArray], ...]

    @cached_property
    def codes(self) -> IntArray:
        """The number of each row's unit, (n,), from 0 without gaps."""
        (_, _, codes), *others = self.columns
        for _, levels, more in others:
            codes = np.unique(codes * len(levels) + more, return_inverse=True)[1]
        return np.asarray(codes, dtype=np.int64)

    def named(self, row: int) -> str:
        """The unit of a row in words, such as 7 or (7, 'b')."""
        ids = [levels[codes[row]] for _, levels, codes in self.columns]
        words = [str(v) if isinstance(v, date) else shown(_whole(v)) for v in ids]
        return words[0] if len(words) == 1 else f"({', '.join(words)})"

    def hashed(self) -> IntArray:
        """A number below 2^63 for each row, (n,), that depends on the values of its unit alone.

        The same units have the same number in every part of a file. Two of m units share one with
        a probability of about m^2 / 2^64, which is negligible: 5e-8 for a million units.
        """
        mixed = np.zeros(self.columns[0][2].size, dtype=np.uint64)
        for _, levels, codes in self.columns:
            digests = np.array([_digest(level) for level in levels], dtype=np.uint64)
            mixed = (mixed ^ digests[codes]) * MIXERS[0]
            mixed = (mixed ^ (mixed >> np.uint64(29))) * MIXERS[1]
        return (mixed & BITS).astype(np.int64)


def _whole(value: Any) -> Any:
    """Whole numbers as such: files may hold them as decimals, and True is 1 as in Python."""
    return int(value) if isinstance(value, bool | int | float) and value % 1 == 0 else value


def _digest(value: Any) -> int:
    """64 bits of a value."""
    kind = "text" if isinstance(value, str) else "other"
    text = f"{kind} {_whole(value)}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def read_ids(values: object, argument: str, n: int) -> Ids:
    """Units from one column, or from several in a frame, a mapping or an array (n, k)."""
    named = is_frame(values)
    rows = isinstance(values, list | tuple) and any(isinstance(v, list | tuple) for v in values[:1])
    columns: Mapping[str, object] = {"": values}
    if named or rows or getattr(values, "ndim", 1) > 1:
        columns = columns_of(values, Subject(argument))
        if not columns:
            raise InputError("{argument} has no column", argument=argument)
    ids = []
    for name, column in columns.items():
        what = Subject(argument, name if named else None)
        levels, codes = levels_and_codes(as_arrow(column, what))
        same_length(what, codes.size, n)
        refuse_missing_rows(codes < 0, what)
        ids.append((what.column, levels, codes))
    return Ids(tuple(ids))


def read_weights(values: object, n: int, what: Subject) -> FloatArray:
    """Survey weights, (n,)."""
    weights = encode_numbers(values, what)
    same_length(what, weights.size, n)
    problem = "{subject} must not be negative; {row} has {value}"
    refuse_rows(weights < 0, problem, what, weights)
    return weights


def read_design(
    n: int,
    *,
    weights: object = None,
    cluster: object = None,
    strata: object = None,
    replicate_weights: object = None,
    replicate_method: object = None,
    partial: bool = False,
    as_drawn: bool = True,
) -> Design:
    """How n rows were drawn; with `partial` they are a part of all, whose clusters have hashes.

    Unless they are all rows `as_drawn`, clusters and strata need not allow a variance.
    """
    w = None if weights is None else read_weights(weights, n, Subject(WEIGHTS))
    units, groups = (
        None if values is None else read_ids(values, argument, n)
        for argument, values in ((CLUSTER, cluster), (STRATA, strata))
    )
    if as_drawn and not partial:
        _refuse_odd_design(n, w, units, groups)
    replicates, method, were_multiples = _read_replicates(replicate_weights, replicate_method, w, n)
    return Design(
        n,
        weights=w,
        cluster=None if units is None else units.hashed() if partial else units.codes,
        strata=None if groups is None else groups.hashed() if partial else groups.codes,
        replicate_weights=replicates,
        replication=method,
        were_multiples=were_multiples,
    )


def refuse_odd_units(roles: Mapping[str, object]) -> None:
    """Raise where clusters and strata allow no variance before any row is left out."""
    given = as_arrays({name: roles.get(name) for name in (WEIGHTS, CLUSTER, STRATA)})
    if not {CLUSTER, STRATA} & given.keys():
        return
    masks = list(lacking_in(given).values())
    if any(mask.size != masks[0].size for mask in masks):
        return  # columns of different lengths are told as such, later
    rows = np.flatnonzero(~np.any(masks, axis=0))
    try:
        read_design(rows.size, **taken(given, rows))
    except InputError as error:
        raise error.renumbered(lambda row: int(rows[row])) from None


def _refuse_odd_design(
    n: int, weights: FloatArray | None, cluster: Ids | None, strata: Ids | None
) -> None:
    """Raise where clusters and strata as they were drawn allow no variance."""
    if cluster is not None and n > 1 and not cluster.codes.any():
        raise InputError(
            f"all {n:,} rows belong to one cluster, {{unit}}; {{argument}} needs two clusters or "
            "more, or leave it out",
            argument=CLUSTER,
            column=cluster.columns[0][0],
            count=1,
            details={"unit": cluster.named(0)},
        )
    if strata is None or n == 0:
        return
    units = np.arange(n) if cluster is None else cluster.codes
    first = np.unique(units, return_index=True)[1]
    if cluster is not None:
        _refuse_torn_clusters(cluster, strata, first)
    unit, lower = ("row", "") if cluster is None else ("cluster", CERTAINTY)
    problem = f"stratum {{stratum}} of {{argument}} has a single {unit} ({{row}}){{more}}, which "
    problem += f"gives no variance; collapse it with a neighbouring stratum{lower}"
    _refuse_strata(np.bincount(strata.codes[first]) == 1, strata, STRATA, problem)
    problem = "all rows of stratum {stratum} have weight 0 ({row} is the first){more}; leave them "
    problem += "out, or collapse it with a neighbouring stratum"
    _refuse_strata(np.bincount(strata.codes, weights) == 0, strata, WEIGHTS, problem)


def _refuse_strata(bad: BoolArray, strata: Ids, argument: str, problem: str) -> None:
    """Raise on the first of the strata that are marked."""
    if bad.any():
        row, others = int(np.argmax(bad[strata.codes])), int(bad.sum()) - 1
        more = f", as in {counted(others, 'other')} of {bad.size:,} strata" if others else ""
        raise InputError(
            problem,
            argument=argument,
            column=strata.columns[0][0] if argument == STRATA else None,
            row=row,
            value=strata.named(row),
            count=others + 1,
            details={"stratum": strata.named(row), "more": more},
        )


def _refuse_torn_clusters(cluster: Ids, strata: Ids, first: IntArray) -> None:
    torn = strata.codes != strata.codes[first][cluster.codes]
    if not torn.any():
        return
    row = int(np.argmax(torn))
    one = int(first[cluster.codes[row]])
    others = int(np.unique(cluster.codes[torn]).size) - 1
    names = [name for name, _, _ in (*strata.columns, *cluster.columns)]
    cure: Setting | Code = Setting(CLUSTER, list(dict.fromkeys(names)))
    if None in names:
        cure = Code("cluster={'stratum': strata, 'cluster': cluster}", "--cluster COL,COL")
    do = "does" if others == 1 else "do"
    more = f", and so {do} {counted(others, 'other cluster')}" if others else ""
    raise InputError(
        f"cluster {{unit}} lies in two strata, {{one}} ({{first}}) and {{other}} ({{row}}){more}",
        argument=CLUSTER,
        row=row,
        value=cluster.named(row),
        count=others + 1,
        hint="where clusters are numbered anew in each stratum, name them by both columns, {}",
        settings=[cure],
        details={"unit": cluster.named(row), "first": Row(one)}
        | {"one": strata.named(one), "other": strata.named(row)},
    )


def _read_replicates(
    values: object, method: object, weights: FloatArray | None, n: int
) -> tuple[FloatArray | None, Replication | None, bool]:
    """Sets of weights (n, R) in full, their method, and whether they came as multiples."""
    if (values is None) != (method is None):
        lacking = Setting(REPLICATES, ...) if values is None else Setting(METHOD, "fay:0.5")
        raise InputError(
            "{argument} needs {other}",
            argument=METHOD if values is None else REPLICATES,
            value=method,
            hint="name them with {settings}" if values is None else NAME_THE_METHOD,
            settings=[lacking],
            details={"other": Argument(lacking.name)},
        )
    if values is None:
        return None, None, False
    replication = Replication.of(method)
    columns = columns_of(values, Subject(REPLICATES))
    for column in list(columns.values())[:1]:
        as_arrow(column, Subject(REPLICATES))  # what is no column at all is told as such
    if len(columns) < 2:
        problem = "{argument} needs two sets of weights or more, one a column; this has {count}"
        raise InputError(problem, argument=REPLICATES, count=len(columns))
    sets = {name: read_weights(c, n, Subject(REPLICATES, name)) for name, c in columns.items()}
    empty = [name for name, replicate in sets.items() if not replicate.any()]
    if empty:
        problem = "{subject} is 0 in every row; leave it out"
        raise InputError(problem, argument=REPLICATES, column=empty[0])
    matrix = np.column_stack(list(sets.values()))
    mean = float(matrix.mean())
    if weights is None and not MIN_MEAN <= mean <= MAX_MEAN:
        raise InputError(
            f"{{argument}} have the mean {mean:,.6g}, but no weights are given, as if every row "
            "had weight 1",
            argument=REPLICATES,
            value=mean,
            hint="name the weights that they belong to with {settings}",
            settings=[Setting(WEIGHTS, ...)],
        )
    if weights is None:
        return matrix, replication, False
    # Whatever made them, every row keeps about its weight on average: of multiples, about 1.
    usual = matrix.mean(axis=1)
    if np.square(usual - 1).sum() < np.square(usual - weights).sum():
        return matrix * weights[:, None], replication, True
    return matrix, replication, False


def design_notes(design: Design) -> list[str]:
    """What a user may want to know of how the rows were drawn."""
    notes = []
    weights, replicates = design.weights, design.replicate_weights
    if weights is not None and (weights == 0).any():
        notes.append(
            f"weight 0 in {counted(int((weights == 0).sum()), 'row')}, which stay in the sample "
            "but count for nothing"
        )
        empty = 0 if design.cluster is None else int((design.totals(weights) == 0).sum())
        if empty:
            notes.append(f"weight 0 in every row of {counted(empty, 'cluster')}")
    plain_clusters = design.cluster is not None and design.strata is None and replicates is None
    if plain_clusters and design.clusters == design.n:
        notes.append(
            "every row is a cluster of its own, which is the same as independent rows: without "
            f"{in_door_words(Setting(CLUSTER))} the test is exact"
        )
    if replicates is not None and weights is not None:
        notes.append(
            "replicate weights are taken as multiples of the weights"
            if design.were_multiples
            else "replicate weights are taken as weights in full, not as multiples of the weights"
        )
        copies = int((replicates == weights[:, None]).all(axis=0).sum())
        if copies:
            notes.append(
                f"{counted(copies, 'set')} of replicate weights equal the weights: leave them out, "
                "unless they were added on purpose"
            )
    return notes
