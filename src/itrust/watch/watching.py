"""`Watch`: a model in use, judged again with every batch, with one error for all times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, get_args

from itrust._core import InputError, checked_alpha, checked_choice, checked_share
from itrust.data import MulticlassSample, Rows, Sample, Scan
from itrust.tasks import Task, as_tasks, class_tasks, parse
from itrust.watch.batches import (
    BatchSchema,
    bet_rows,
    chunks_of,
    matrix_parts,
    means_of,
    refuse_order,
    refuse_repeated,
    taken_batch,
    taken_reference,
    time_range,
)
from itrust.watch.bets import PanelWealth, since_of, total_of
from itrust.watch.components import MAX_CHECKS, settled_panel
from itrust.watch.results import (
    MAX_LOG,
    BatchRecord,
    NumberSoFar,
    OfBatches,
    Onset,
    Promise,
    Segment,
    WatchFinding,
    exp_of,
)
from itrust.watch.sequences import TaskSequence, begun_sequences

PILOT = 20_000  # random rows of the reference that settle checks


@dataclass(frozen=True, eq=False, repr=False)
class Watch(OfBatches):
    """A model in use: evidence that it is no longer calibrated, valid at any time.

    `Watch.start(reference)` settles the checks, `update(batch)` gives a new watch with one more
    batch; nothing is changed in place. While P(y = 1 | x, p, past) = p, the evidence is a
    supermartingale that begins at 1, so that it may be looked at after every batch, for ever, and
    reaches 1 / alpha with probability alpha at most. Cost of an update: O(n K), K checks.

    Attributes
    ----------
    alpha : float
        Error that is allowed, over all times; with a run length, one over the average number of
        batches to a false alarm.
    tolerance : float or None
        Bias that is let pass: while the bias of every row lies within it, the promise holds. None:
        none is.
    promise : Promise
        What is promised of a calibrated model.
    schema : BatchSchema
        What every batch must have.
    history : tuple of BatchRecord
        All batches, in order.
    segments : tuple of Segment
        The models that were watched, the last one being the one in use.
    source : mapping
        What the maker of the watch keeps with it, such as names of columns; plain JSON.
    wealth : tuple of PanelWealth
        The checks of every class, and what the bets on them have become.
    sequences : tuple of TaskSequence
        Sums behind the numbers so far.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(6_000, rng=0).sample
    >>> calibrated = town.with_predictions(it.simulate.survey(6_000, rng=0).truth)
    >>> reference, *weeks = calibrated.split([0.25, 0.25, 0.25, 0.25], rng=0)
    >>> watch = it.Watch.start(reference, tasks=["mean(age)"])
    >>> for week in weeks:
    ...     watch = watch.update(week)
    >>> len(watch.history), watch.alarm
    (3, False)
    """

    alpha: float
    tolerance: float | None
    promise: Promise
    schema: BatchSchema
    wealth: tuple[PanelWealth, ...]
    sequences: tuple[TaskSequence, ...]
    history: tuple[BatchRecord, ...]
    segments: tuple[Segment, ...]
    source: Mapping[str, Any]

    @classmethod
    def start(
        cls,
        reference: Sample | MulticlassSample | Scan,
        tasks: Sequence[Task | str] | Task | str = (),
        *,
        alpha: float = 0.05,
        tolerance: float | None = None,
        promise: Literal["ever", "run length"] = "ever",
        name: str | None = None,
    ) -> Self:
        """Settle what is watched, on rows from the time when the model was judged.

        Checks, their scales and their weights come from predictions and covariates of the
        reference alone. Its labels serve one of the recalibrations that bet, and nothing else.

        Parameters
        ----------
        reference : Sample, MulticlassSample or Scan
            Labelled rows that no batch repeats. Clusters must be in memory.
        tasks : sequence of Task or str
            Numbers that are reported: means, shares, rates, and arithmetic of them. Default: none.
        alpha : float
            Error that is allowed, 0.05 by default.
        tolerance : float, optional
            Bias that does not matter: alarms are for larger ones only. Default: any bias counts.
        promise : {"ever", "run length"}
            "ever", the default: a calibrated model ever raises an alarm with probability alpha at
            most. "run length": it takes 1 / alpha batches or more on average, and bets begin anew
            after every alarm.
        name : str, optional
            Of the model. Default: it has none.

        Returns
        -------
        Watch
            Before its first batch.
        """
        kept: Promise = checked_choice(promise, "promise", get_args(Promise))
        bias = None if tolerance is None else checked_share(tolerance, "tolerance")
        own = written_tasks(as_tasks(tasks))
        nothing = BatchSchema((), (), None, weighted=False, clustered=False)
        empty = cls(checked_alpha(alpha), bias, kept, nothing, (), (), (), (), {})
        return empty._begun(reference, own, name)

    def update(
        self,
        batch: Sample | MulticlassSample | Scan,
        *,
        name: str | None = None,
        at: object = None,
        late: bool = False,
    ) -> Self:
        """Take in a batch.

        Rows belong into the batch in which their outcome window closes, whatever the outcome is.
        Rows of weight 0 count nothing: a label among them that the model gave probability 0 raises
        no alarm.

        Parameters
        ----------
        batch : Sample, MulticlassSample or Scan
            Rows with labels that no earlier batch had, with the covariates of the reference; files
            are read into memory. A cluster lies in one batch: what is said of rows that depend on
            earlier ones is not true. A sample has two rows or more and of every covariate a value;
            rows of which that is not true wait for the next batch, whatever their labels are.
        name : str, optional
            Such as "2026-W12"; no two batches of a model share one. Default: it has none.
        at : date, datetime, str or pair of them, optional
            From when to when the rows are. A batch that begins before the end of the one before is
            refused, unless `late`. Default: not known; then no batch of the segment may have it.
        late : bool
            Whether these are rows of earlier times whose outcomes came late.

        Returns
        -------
        Watch
            With one more batch.
        """
        rows, digest = taken_batch(batch, self.schema)
        start, end = time_range(at)
        refuse_repeated(self.history, self.segments, digest, checked_name(name))
        if not late:
            refuse_order(self.history, self.segments[-1], start, end)
        segment = self.segments[-1]
        restarts = self.promise == "run length" and self.alarm
        count = 1 if restarts else len(self.running) + 1
        outcomes = {label: rows.outcome(k) for k, label in enumerate(self.schema.labels)}
        wealth = tuple(
            own.after(
                matrix_parts(outcomes[own.panel.label], own.panel, self.schema.largest_weight),
                count,
                self.promise,
                self.tolerance or 0.0,
                restarts=restarts,
            )
            for own in self.wealth
        )
        impossible = 0 if self.tolerance is not None else int(rows.impossible.size)
        log_evalue = math.inf
        if not impossible and (restarts or self.log_evalue < math.inf):
            log_evalue = total_of(wealth, count, self.promise)
        first = self.promise == "run length" or not self.alarm
        record = BatchRecord(
            len(self.history) + 1,
            name,
            rows.n,
            *means_of(rows),
            log_evalue,
            log_evalue if restarts else max(self.log_peak, log_evalue),
            segment.number,
            bool(late),
            digest,
            start,
            end,
            impossible,
            first and log_evalue >= -math.log(self.alpha),
        )
        found = replace(
            self,
            wealth=wealth,
            sequences=tuple(own.after(outcomes) for own in self.sequences),
            history=(*self.history, record),
            segments=(*self.segments[:-1], replace(segment, batches=segment.batches + 1)),
        )
        if not record.raised or log_evalue == math.inf:
            return found
        names = [(own.number, own.name) for own in found.running]
        since = since_of(wealth, names, self.alpha, self.promise)
        return replace(found, history=(*self.history, replace(record, since=since)))

    def new_model(
        self, reference: Sample | MulticlassSample | Scan, name: str | None = None
    ) -> Self:
        """Watch another model from now on; the history stays.

        A new segment has its own reference, checks, evidence and numbers, and its own error alpha.

        Parameters
        ----------
        reference : Sample, MulticlassSample or Scan
            Labelled rows of the new model.
        name : str, optional
            Of the model. Default: it has none.

        Returns
        -------
        Watch
            Before the first batch of the new model.
        """
        found = self._begun(reference, [own.task for own in self.sequences], name)
        last, new = found.segments[-2:]
        if not last.batches and last.reference_digest == new.reference_digest:
            raise InputError(
                "{argument}: these rows are the reference of the present model already, which has "
                "seen no batch yet; go on with its first batch",
                argument="reference",
            )
        return found

    def _begun(self, reference: Any, tasks: Sequence[Task], name: object) -> Self:
        """Settle checks, bets and numbers of a model before its first batch."""
        rows, schema, n, digest = taken_reference(reference)
        first = len(self.history) + 1
        segment = Segment(len(self.segments), checked_name(name), first, 0, n, digest)
        extract, has_moves = rows.extract(PILOT), self.tolerance is None
        named = class_tasks(tasks, extract.some)
        most = max(12, MAX_CHECKS // len(schema.labels))
        wealth = []
        for k, label in enumerate(schema.labels):
            some = replace(extract, some=extract.some.outcome(k))
            panel = settled_panel(some.pilot(PILOT), label, most=most)
            wealth.append(PanelWealth.begun(panel, self.promise, moved=has_moves))
        wanted = {leaf.label for task in named for leaf in task.leaves()}
        outcomes: dict[Any, list[Rows]] = {label: [] for label in wanted}
        for chunk in chunks_of(rows):
            for k, label in enumerate(schema.labels):
                outcome = chunk.outcome(k)
                if has_moves:
                    wealth[k] = wealth[k].with_reference(outcome.points, bet_rows(outcome))
                if label in wanted:
                    outcomes[label].append(outcome)
        return replace(
            self,
            schema=schema,
            wealth=tuple(wealth),
            sequences=begun_sequences(named, outcomes),
            segments=(*self.segments, segment),
        )

    def with_source(self, source: Mapping[str, Any]) -> Self:
        """Keep something with the watch, such as the names of columns.

        Parameters
        ----------
        source : mapping of str to object
            Plain JSON, which is saved and read back as it is.

        Returns
        -------
        Watch
            The same with it.
        """
        return replace(self, source=dict(source))

    def save(self, path: str | Path) -> Path:
        """Write the watch into a file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            Where to; JSON of the schema "itrust-watch/2".

        Returns
        -------
        Path
            The same path.
        """
        from itrust._core import write_whole
        from itrust.watch.state import text_of

        return write_whole(Path(path), text_of(self))

    @classmethod
    def load(cls, path: str | Path) -> Watch:
        """Read a watch that `save` wrote; it goes on to the bit.

        Parameters
        ----------
        path : str or Path
            A file; it is data and never code, and checked as input of strangers is.

        Returns
        -------
        Watch
            As it was saved.
        """
        from itrust.watch.state import loaded_watch

        return loaded_watch(Path(path))

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Covariates that no check reads by themselves: they are too many, or do not vary enough.

        What differs along them is found only as far as other checks see it.
        """
        read = {check.covariates for own in self.wealth for check in own.panel.checks}
        return tuple(name for name in self.schema.names if (name,) not in read)

    def _last(self, name: str) -> float:
        """A logarithm of the last batch, or the one that there is before any."""
        nothing = 0.0 if self.promise == "ever" else -math.inf
        return float(getattr(self.present[-1], name)) if self.present else nothing

    @property
    def log_evalue(self) -> float:
        """Logarithm of `evalue`."""
        return self._last("log_evalue")

    @property
    def log_peak(self) -> float:
        """The largest logarithm of this model so far; with a run length, since the last alarm."""
        return self._last("log_peak")

    @property
    def evalue(self) -> float:
        """The evidence now: 1 before the first batch; with a run length a sum that begins at 0.

        Infinite where a label occurred that the model had given probability 0.
        """
        return exp_of(self.log_evalue)

    @property
    def pvalue(self) -> float | None:
        """One over the largest evidence of this model so far, at most 1; valid at any time.

        None where the promise is a run length, which has no p-value.
        """
        if self.promise == "run length":
            return None
        peak = self.log_peak
        return 0.0 if peak == math.inf else min(1.0, exp_of(-min(peak, MAX_LOG)))

    @property
    def alarm(self) -> bool:
        """Whether the evidence has reached 1 / alpha; with a run length, in the last batch."""
        last = self.present[-1:] if self.promise == "run length" else self.present
        return any(record.raised for record in last)

    @property
    def since(self) -> Onset | None:
        """Since when the model has been miscalibrated, as the alarm has it; None without alarm.

        Batches after the alarm do not move it. None as well where labels of probability 0 raised
        the alarm.
        """
        raised = [record for record in self.present if record.raised]
        return raised[-1].since if self.alarm else None

    def findings(self, alpha: float | None = None) -> tuple[WatchFinding, ...]:
        """The checks that carry enough evidence by themselves, adjusted for all checks and times.

        Whatever is found implies an alarm at the same alpha. An alarm need not come with a finding:
        evidence may be spread over many checks.

        Parameters
        ----------
        alpha : float, optional
            Largest adjusted p-value; with a run length one over the smallest weighted evidence.
            Default: that of the watch.

        Returns
        -------
        tuple of WatchFinding
            The strongest first.
        """
        allowed = self.alpha if alpha is None else checked_alpha(alpha)
        return tuple(f for f in self.checks() if f.weight * f.evalue >= 1 / allowed)

    def checks(self) -> tuple[WatchFinding, ...]:
        """All checks with their evidence so far, whether or not it is enough.

        Returns
        -------
        tuple of WatchFinding
            The strongest first.
        """
        return tuple(sorted(self._checks(), key=lambda f: -f.weight * f.evalue))

    def _checks(self) -> list[WatchFinding]:
        panels = len(self.wealth)
        return [own for panel in self.wealth for own in panel.findings(panels, self.promise)]

    def levels(self) -> tuple[WatchFinding, ...]:
        """The checks of all rows and of levels, whose sums are labels beyond prediction.

        Returns
        -------
        tuple of WatchFinding
            All rows first; empty with weights, clusters or a tolerance, where sums are others.
        """
        if self.tolerance is not None or self.schema.weighted or self.schema.clustered:
            return ()
        found = self._checks() if self.running else []
        return tuple(own for own in found if own.family in ("overall", "levels"))

    @property
    def tasks(self) -> tuple[NumberSoFar, ...]:
        """Each number so far in the time of this model, with a confidence sequence."""
        return tuple(own.so_far(self.alpha) for own in self.sequences)

    def _facts(self) -> Mapping[str, Any]:
        from itrust.watch.reports import watch_report

        return watch_report(self).to_dict()

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [record.to_dict() for record in self.history]

    def __repr__(self) -> str:
        said = "alarm" if self.alarm else "no alarm"
        return f"<Watch: {len(self.history):,} batches, evidence {self.evalue:.3g}, {said}>"


def written_tasks(tasks: Sequence[Task]) -> list[Task]:
    """Refuse tasks that no file can hold: those with functions of Python."""
    for task in tasks:
        try:
            same = parse(task.formula) == task
        except InputError:
            same = False
        if not same:
            raise InputError(
                "{task} cannot be written as text, which a watch needs to be saved; write it as a "
                "formula, such as 'mean(log(income))'",
                argument="tasks",
                value=task,
                task=task,
            )
    return list(tasks)


def checked_name(name: object) -> str | None:
    """Pass the name of a batch or of a model on; refuse what is no short text."""
    if name is not None and (not isinstance(name, str) or not name.strip() or len(name) > 200):
        raise InputError(
            "{argument} is a text of 1 to 200 characters, not {value}", argument="name", value=name
        )
    return name
