"""The one intake: what users bring, as arrays, a frame or some rows of a file, becomes `Rows`.

Every refusal is one sentence. Rows in messages count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import pyarrow as pa

from itrust._core import (
    Argument,
    BoolArray,
    Code,
    InputError,
    Setting,
    Subject,
    checked_choice,
    counted,
)
from itrust.data.column import Column, Points, refuse_copies
from itrust.data.design import read_design, refuse_odd_units
from itrust.data.encoding import (
    BOTH_AT_ONCE,
    PLAIN,
    Kinds,
    as_arrow,
    by_name,
    columns_of,
    encode,
    encode_numbers,
    frame_columns,
    name_among,
    refuse_duplicates,
    same_length,
)
from itrust.data.grammar import as_condition
from itrust.data.predicates import PREDICTION, Predicate, in_backticks
from itrust.data.probabilities import (
    LABEL,
    PROB,
    as_matrix,
    both_values,
    class_columns,
    nameless_columns,
    names_several,
    numbers_like_labels,
    one_against_the_rest,
    positive_column,
    read_codes,
    read_labels,
    read_matrix,
    read_probabilities,
    rows_that_sum_to_1,
)
from itrust.data.rows import Rows
from itrust.data.selection import (
    Selected,
    SelectionCounts,
    as_arrays,
    blanked_cells,
    lacking_in,
    missing_in,
    other_rows,
    read_na_values,
    refuse_few_inside,
    selection_notes,
    taken,
)
from itrust.data.units import UnitColumn, read_units, replicate_columns, unit_columns

WRONG_ROLE = "label, prob, on and weights are names of columns, not {value}"
UNITS = ("cluster", "strata")
DRAWN = ("weights", *UNITS, "replicate_weights")

MissingRule = Literal["error", "level", "drop"]
R = TypeVar("R", bound=Rows)


def read_rows(
    kind: type[R],
    y: object,
    p: object,
    x: object,
    *,
    classes: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    weights: object = None,
    cluster: object = None,
    strata: object = None,
    replicate_weights: object = None,
    replicate_method: object = None,
    positive: object = None,
    missing: MissingRule = "error",
    kinds: Kinds = PLAIN,
    label: str | None = None,
    origin: tuple[str, ...] = (),
    folds: int = 0,
    others: Mapping[str, object] | None = None,
    as_drawn: bool = True,
    partial: bool = False,
) -> R:
    """Read rows with labels or without, of two labels or K classes, all of them or `partial`.

    `others` are columns without a role, of which only units are kept. Unless rows are all
    `as_drawn`, their strata and clusters need not allow a variance.
    """
    checked_choice(missing, "missing", get_args(MissingRule))
    drawn = dict(zip(DRAWN, (weights, cluster, strata, replicate_weights), strict=True))
    given: dict[str, Any] = {"label": y if kind.labelled else None, "prob": p, **drawn}
    if not partial:
        same_index([*_columns_in(given), *_columns_in({"x": x})])
    named: tuple[Any, ...] | None = None
    if kind.several:
        named, given["prob"] = read_matrix(p, classes)
        if named is None and not kind.labelled:
            raise nameless_columns(given["prob"].shape[1])
    columns = read_covariates(x, names, partial=partial, kinds=kinds)
    selected = _lacking_nothing(given, columns) if missing == "drop" else Selected(given)
    if selected.rows is not None:
        if kind.labelled:
            refuse_odd_units(drawn)
        as_drawn, others = False, {}  # columns that nobody asked for still have all rows
        columns = tuple(column.take(selected.rows) for column in columns)
        given = {**dict.fromkeys(given), **selected.columns}
    with selected.numbered():
        labels = kinds.value_labels.get(label or "")
        parts = _read_outcomes(kind, given, named, positive, labels, columns, partial=partial)
        n = len(parts["predictions"])
        parts["design"] = read_design(
            n,
            **{role: given[role] for role in DRAWN},
            replicate_method=replicate_method,
            as_drawn=as_drawn and not partial,
        )
    rows = kind.made(
        **parts
        | {
            "columns": settled_columns(columns, missing),
            "label": label,
            "dropped": (*selection_notes(selected.counts), *parts["dropped"]),
            "origin": origin,
            "folds": folds,
            "units": read_units(others or {}, n),
        }
    )
    if partial:
        return rows
    refuse_copies(rows)
    return rows.checked()


def _columns_in(given: Mapping[str, object]) -> list[tuple[str, object]]:
    return [
        pair
        for name, value in given.items()
        for pair in (value.items() if isinstance(value, Mapping) else [(name, value)])
    ]


def _read_outcomes(
    kind: type[Rows],
    given: Mapping[str, Any],
    named: tuple[Any, ...] | None,
    positive: object,
    labels: Any,
    columns: tuple[Column, ...],
    *,
    partial: bool,
) -> dict[str, Any]:
    """Labels and probabilities, each row with a covariate beside it."""
    codes: Any = None
    classes: tuple[Any, ...] = (0, 1) if named is None else named
    notes: tuple[str, ...] = ()
    others: frozenset[Any] = frozenset()
    p, rounded = given["prob"], (0, 0.0)
    if kind.labelled and kind.several:
        classes, codes = read_codes(given["label"], named, p.shape[1], labels)
    elif kind.labelled:
        y, known, positive = read_labels(given["label"], positive, labels, partial=partial)
        p, codes = positive_column(p, known, positive), y.astype(np.int8)
        classes = both_values(known, 1 if positive is None else positive, labels)
        others = frozenset(value for value in known if value != classes[1])
        notes = () if partial else one_against_the_rest(known, positive)
    elif not kind.several:
        p = encode_numbers(p, PROB)
    n = len(p) if codes is None else codes.size
    counted_as = "probabilities" if codes is None else "labels"
    if kind.several:
        same_length(PROB, len(p), n)
        predictions, rounded = rows_that_sum_to_1(np.asfortranarray(p), classes)
    else:
        predictions = read_probabilities(p, n)[:, None]
    for column in columns:
        same_length(Subject("x", column.name), len(column), n, counted_as)
    return {
        "predictions": predictions,
        "codes": codes,
        "classes": classes,
        "dropped": notes,
        "rounded": rounded,
        "other_labels": others,
    }


def refuse_positive(positive: object) -> None:
    """Raise if one label is to count as 1 where all classes are judged."""
    if positive is not None:
        problem = (
            "{argument} is for one column of probabilities; with the columns of all classes, "
            "sample.one_class({value}) judges that class against the rest"
        )
        raise InputError(problem, argument="positive", value=positive)


def same_index(inputs: Iterable[tuple[str, object]]) -> None:
    """Refuse pandas inputs whose indexes differ: rows are matched by position."""
    first_name, first = "", None
    for name, value in inputs:
        is_pandas = type(value).__module__.partition(".")[0] == "pandas"
        index: Any = getattr(value, "index", None) if is_pandas else None
        if first is None:
            first_name, first = name, index
        elif index is not None and len(index) == len(first) and not index.equals(first):
            row = int(np.argmax(np.asarray(index) != np.asarray(first)))
            one, other = first[row], index[row]
            raise InputError(
                f"{{first}} and {{second}} have different indexes ({{row}}: {one} and {other}), "
                "but rows go by position; align them, or .reset_index(drop=True)",
                row=row,
                first=first_name,
                second=name,
            )


def _lacking_nothing(given: dict[str, Any], covariates: tuple[Column, ...]) -> Selected:
    """What comes beside the covariates, of the rows that have everything."""
    matrix, _ = as_matrix(given.get("prob"))  # a list of rows, or a frame with two columns
    is_matrix = matrix is not None and matrix.ndim == 2
    arrays = as_arrays({**given, "prob": matrix} if is_matrix else given)
    masks = lacking_in(arrays)
    for column in covariates:
        masks[column.name] = column.missing | masks.get(column.name, False)
    if len({mask.size for mask in masks.values()}) > 1:
        return Selected(given)  # columns of different lengths are told as such, later
    keep = ~np.any(list(masks.values()), axis=0)
    if keep.all():
        return Selected(given)
    rows, lacking = np.flatnonzero(keep), {name: int(mask.sum()) for name, mask in masks.items()}
    counts = SelectionCounts(keep.size, keep.size, rows.size, lacking)
    counts.refuse_few()
    return Selected(taken(arrays, rows), rows, counts)


def read_covariates(
    x: object, names: Sequence[str] | None, *, partial: bool = False, kinds: Kinds = PLAIN
) -> tuple[Column, ...]:
    """Covariates of any form, encoded; nothing is settled about missing values yet."""
    columns = columns_of(x)
    if names is not None:
        names = [names] if isinstance(names, str) else [str(name) for name in names]
        if len(names) != len(columns):
            told = counted(len(names), "name"), counted(len(columns), "covariate")
            raise InputError(f"names gives {told[0]} for {told[1]}", argument="names")
        columns = by_name(list(zip(names, columns.values(), strict=True)))
    return tuple(encode(name, x, partial=partial, kinds=kinds) for name, x in columns.items())


def settled_columns(columns: tuple[Column, ...], missing: MissingRule) -> tuple[Column, ...]:
    """Refuse missing covariates unless they are to be a level; rows to drop are gone by now."""
    counts = {c.name: int(c.missing.sum()) for c in columns if c.missing.any()}
    if counts and missing == "error":
        told = ", ".join(f"{name!r} in {counted(count, 'row')}" for name, count in counts.items())
        first = next(c for c in columns if c.name in counts)
        raise InputError(
            "covariates have missing values: {told} (first: {row}{where})",
            argument="x",
            column=first.name,
            row=int(np.argmax(first.missing)),
            count=counts[first.name],
            hint="pass {settings}",
            settings=[Setting("missing", "level"), Setting("missing", "drop")],
            told=told,
            where=f" of {first.name!r}" if len(counts) > 1 else "",
        )
    return tuple(c.with_missing_level() for c in columns)


@contextmanager
def column_names_known(named: Mapping[str, str]) -> Iterator[None]:
    """Give an error about an argument the name of the column that it came from."""
    try:
        yield
    except InputError as error:
        name = named.get(error.argument or "")
        if name is None or error.column is not None:
            raise
        raise error.at(column=name) from None


# Columns by their roles, in frames and files.


def columns_named(frame: object, names: Sequence[str]) -> dict[str, object]:
    """Columns of a frame, among which some that are named, each once."""
    columns = frame_columns(frame)
    for name in names:
        name_among(list(columns), name, "on")
    refuse_duplicates(names)
    return columns


def refuse_among_covariates(role: str, name: str, covariates: Sequence[str]) -> None:
    """Raise if a column with a role of its own is a covariate, too."""
    if name in covariates:
        problem = f"{{value}} is the {role} column; take it out of {{on}}"
        raise InputError(problem, argument="on", value=name, on=Code("`on`", "--on"))


@dataclass(frozen=True, eq=False)
class Roles:
    """Which column of a frame or of files is what, and which rows count."""

    label: str | None
    prob: tuple[str, ...]
    classes: tuple[Any, ...]  # of the columns `prob`; none for one outcome
    names: tuple[str, ...]
    weights: str | None = None
    cluster: tuple[UnitColumn, ...] = ()
    strata: tuple[UnitColumn, ...] = ()
    replicate_weights: tuple[str, ...] = ()
    replicate_method: object = None
    positive: Any = None
    missing: MissingRule = "error"
    kinds: Kinds = PLAIN
    na_values: tuple[Any, ...] = ()
    where: Predicate | None = None

    @classmethod
    def of(
        cls,
        known: Sequence[str],
        *,
        label: object,
        prob: object,
        on: Any = (),
        weights: object = None,
        cluster: str | Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
        replicate_weights: str | Sequence[str] | None = None,
        replicate_method: object = None,
        positive: object = None,
        missing: object = "error",
        categories: object = (),
        numbers: object = (),
        value_labels: object = None,
        na_values: object = None,
        where: object = None,
        in_files: bool = False,
    ) -> Roles:
        """Read what a user named; files tell by themselves which columns they lack."""
        several = names_several(prob, dict.fromkeys(known))
        if in_files:
            single = {} if several else {"prob": prob}
            for argument, name in {"label": label, "weights": weights, **single}.items():
                if not isinstance(name, str) and not (argument != "prob" and name is None):
                    raise InputError(WRONG_ROLE, argument=argument, value=name)
            if on is not None and not isinstance(on, Iterable):
                raise InputError(WRONG_ROLE, argument="on", value=on)
        names = (on,) if isinstance(on, str) else tuple(str(name) for name in on or ())
        if several:
            refuse_positive(positive)
        classes = class_columns(known, prob) if several else {}
        roles = cls(
            label=None if label is None else str(label),
            prob=tuple(classes.values()) or (str(prob),),
            classes=tuple(classes),
            names=names,
            weights=None if weights is None else str(weights),
            cluster=unit_columns(cluster, known, "cluster"),
            strata=unit_columns(strata, known, "strata"),
            replicate_method=replicate_method,
            positive=positive,
            missing=checked_choice(missing, "missing", get_args(MissingRule)),
            kinds=Kinds.of(categories, numbers, value_labels),
            na_values=read_na_values(na_values),
            where=None if where is None else as_condition(where),
        )
        for role, name in () if in_files else [*roles.taken, *(("on", name) for name in names)]:
            name_among(known, name, role)
        refuse_duplicates(names)
        replicates = replicate_columns(replicate_weights, known, roles.taken)
        roles = replace(roles, replicate_weights=tuple(replicates))
        roles.refuse_two_at_once()
        roles.kinds.among(known)
        roles.condition_columns(known)
        return roles

    @property
    def several(self) -> bool:
        """Whether there is a column of probabilities for each of several classes."""
        return bool(self.classes)

    @property
    def prediction(self) -> str:
        """The column that "prediction" stands for in a condition; of several classes none."""
        return "" if self.several else self.prob[0]

    @property
    def taken(self) -> list[tuple[str, str]]:
        """Roles and the columns that have them, covariates and replicate weights apart."""
        units = [(role, u.column) for role in UNITS for u in getattr(self, role)]
        one = [("label", self.label), *(("prob", name) for name in self.prob)]
        roles = [*one, ("weights", self.weights), *units]
        return [(role, name) for role, name in roles if name is not None]

    @property
    def columns(self) -> list[str]:
        """All columns with a role."""
        taken = [name for _, name in self.taken]
        return list(dict.fromkeys([*taken, *self.names, *self.replicate_weights]))

    @property
    def subjects(self) -> dict[str, Subject]:
        """What errors call each column."""
        return {
            **{name: Subject("x", name) for name in self.names},
            **{name: Subject("replicate_weights", name) for name in self.replicate_weights},
            **{name: Subject(role) for role, name in self.taken},
        }

    @property
    def named(self) -> dict[str, str]:
        """The columns of roles that one column has."""
        return {r: name for r, name in self.taken if r in ("label", "weights") or not self.several}

    @property
    def keeps_all(self) -> bool:
        """Whether every row counts as it is."""
        return not (self.na_values or self.where is not None or self.missing == "drop")

    def condition_columns(self, known: Sequence[str]) -> list[str]:
        """The columns that the condition reads; refuses one that is not there."""
        names = []
        for name in sorted(self.where.names) if self.where is not None else ():
            if name not in known and name == PREDICTION and self.prediction:
                name = self.prediction
            names.append(name_among(known, name, "where", in_backticks(name, known)))
        return names

    def applied(
        self,
        columns: Mapping[str, object],
        subjects: Mapping[str, Subject],
        *,
        partial: bool = False,
    ) -> Selected:
        """The rows that count; `partial` ones, of a file, may be none."""
        if self.keeps_all:
            return Selected(dict(columns))
        read = self.condition_columns(list(columns))
        looked_at = {**{name: Subject("x", name) for name in read}, **subjects}
        arrays = {name: as_arrow(columns[name], what) for name, what in looked_at.items()}
        arrays, blanked = blanked_cells(arrays, self.na_values) if self.na_values else (arrays, {})
        keep = np.ones(len(next(iter(arrays.values()))), dtype=bool)
        if self.where is not None:
            keep = self._inside({name: arrays[name] for name in read}, check=not partial)
        inside, lacking = int(keep.sum()), {}
        if not partial and self.where is not None:
            refuse_few_inside(inside, keep.size, self.where, "where")
        if self.missing == "drop":
            masks = {name: missing_in(arrays[name]) & keep for name in subjects}
            lacking = {name: int(mask.sum()) for name, mask in masks.items()}
            keep = keep & ~np.any(list(masks.values()), axis=0)
        rows = np.flatnonzero(keep)
        counts = SelectionCounts(keep.size, inside, rows.size, lacking, blanked)
        if not partial:
            counts.refuse_few()
        others = {name: column for name, column in columns.items() if name not in arrays}
        if rows.size == keep.size:
            return Selected({**others, **arrays}, counts=counts)
        return Selected({**other_rows(others, rows), **taken(arrays, rows)}, rows, counts)

    def _inside(self, arrays: Mapping[str, pa.Array], *, check: bool) -> BoolArray:
        assert self.where is not None
        columns = tuple(
            encode(name, array, partial=True, kinds=self.kinds) for name, array in arrays.items()
        )
        by_name = {column.name: column for column in columns}
        n = len(columns[0]) if columns else 0
        prob = self.prediction
        p = by_name[prob].values if prob in by_name else np.zeros(n)
        points = Points(np.asarray(p, dtype=float), columns)
        for leaf in self.where.leaves() if check else ():
            if not leaf.names <= {PREDICTION} - by_name.keys():
                leaf.check(points)
        return self.where.rows(points)

    def refuse_two_at_once(self) -> None:
        """Raise if a column has two roles, of which one is its own."""
        for role, name in self.taken:
            if role in ("label", "prob", "weights"):
                others = [r for r, other in self.taken if r != role and other == name]
                if others:
                    problem, other = BOTH_AT_ONCE, Argument(others[0])
                    raise InputError(problem, argument=role, value=name, other=other)
            if role in ("label", "prob"):
                refuse_among_covariates(role, name, self.names)
        for name in self.replicate_weights:
            refuse_among_covariates("replicate_weights", name, self.names)

    def read(self, kind: type[R], columns: Mapping[str, Any], **settings: Any) -> R:
        """Read rows of a frame, or `partial` ones of a file, without clusters and strata."""
        p: Any = columns[self.prob[0]]
        classes: tuple[Any, ...] | None = None
        if self.several:
            classes = self.classes
            if self.label is not None:
                label = as_arrow(columns[self.label], LABEL)
                classes = numbers_like_labels(classes, label.type)
            p = {k: columns[name] for k, name in zip(classes, self.prob, strict=True)}
        return read_rows(
            kind,
            None if self.label is None else columns[self.label],
            p,
            {name: columns[name] for name in self.names},
            classes=classes,
            weights=None if self.weights is None else columns[self.weights],
            **({} if settings.get("partial") else self._drawn(columns)),
            positive=self.positive,
            kinds=self.kinds,
            label=self.label,
            **{"missing": self.missing} | settings,
        )

    def _drawn(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Clusters, strata and replicate weights of the rows."""
        looked_at = self.prob[1:] if len(self.prob) == 2 else self.prob
        replicates = {name: columns[name] for name in self.replicate_weights} or None
        units: dict[str, Any] = {"replicate_weights": replicates}
        units["replicate_method"] = self.replicate_method
        for role in UNITS:
            for unit in getattr(self, role):
                # Blocks of time are as long as the predictions of any class need them.
                settled = [unit.settled(columns, role, columns[name]) for name in looked_at]
                own = max(settled, key=lambda u: u.length if isinstance(u.length, int) else 0)
                units.setdefault(role, {})[own.text] = own.values(columns, role)
        return units


def rows_of_frame(kinds: Sequence[type[R]], frame: object, **given: Any) -> R:
    """Take the named columns of a frame; of several classes as rows of the second kind."""
    columns = frame_columns(frame)
    roles = Roles.of(list(columns), **given)
    return rows_of_columns(kinds[int(roles.several)], roles, columns)


def rows_of_columns(kind: type[R], roles: Roles, columns: Mapping[str, Any]) -> R:
    """The rows of some columns that count, read."""
    with column_names_known(roles.named):
        selected = roles.applied(columns, roles.subjects)
    if selected.rows is not None:
        _refuse_odd_units(columns, roles)
    used = set(roles.columns)
    others = {name: column for name, column in selected.columns.items() if name not in used}
    with selected.numbered(), column_names_known(roles.named):
        others = others if kind.labelled else {}
        as_drawn = selected.rows is None
        rows = roles.read(kind, selected.columns, others=others, as_drawn=as_drawn)
    notes = selection_notes(selected.counts, roles.where)
    return rows.replaced(dropped=(*notes, *rows.dropped))


def _refuse_odd_units(columns: Mapping[str, object], roles: Roles) -> None:
    """Raise where clusters and strata allow no variance before rows are left out."""
    # Blocks of time are known after that only, and are passed over.
    drawn: dict[str, object] = {}
    for role in UNITS:
        units: Sequence[UnitColumn] = getattr(roles, role)
        if units and all(unit.length is None for unit in units):
            subjects = {unit.column: Subject(role, unit.column) for unit in units}
            own = {name: as_arrow(columns[name], what) for name, what in subjects.items()}
            blanked, _ = blanked_cells(own, roles.na_values)
            drawn[role] = {unit.text: blanked[unit.column] for unit in units}
    if drawn:
        refuse_odd_units(drawn)
