"""`Watch`: a model in use, judged again with every batch, with one error for all times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from itrust._core import (
    InputError,
    Rng,
    checked_alpha,
    checked_choice,
    checked_share,
)
from itrust.data import MulticlassSample, MulticlassScan, Sample, Scan
from itrust.tasks import Task, as_tasks, class_tasks
from itrust.watch.batches import (
    TakenBatch,
    taken_batch,
    taken_reference,
    time_range,
)
from itrust.watch.beginning import begun, checked_name, checked_seed, few_rows, written_tasks
from itrust.watch.components import CheckPanel
from itrust.watch.evidence import total_of
from itrust.watch.order import refuse_order, refuse_repeated
from itrust.watch.results import (
    BatchRecord,
    Promise,
    RaisedAlarm,
    Segment,
)
from itrust.watch.watched import WatchedModel
from itrust.watch.wealth import PanelWealth


@dataclass(frozen=True, eq=False, repr=False)
class Watch(WatchedModel):
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
    seed : int
        Kept for what may need it; nothing is drawn as yet.
    schema : BatchSchema
        What every batch must have.
    history : tuple of BatchRecord
        All batches, in order.
    segments : tuple of Segment
        The models that were watched, the last one being the one in use.
    source : mapping
        What the maker of the watch keeps with it, such as names of columns; plain JSON.

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

    @classmethod
    def start(
        cls,
        reference: Sample | MulticlassSample | Scan | MulticlassScan,
        tasks: Sequence[Task | str] | Task | str = (),
        *,
        alpha: float = 0.05,
        tolerance: float | None = None,
        promise: Literal["ever", "run length"] = "ever",
        name: str | None = None,
        rng: Rng = 0,
    ) -> Self:
        """Settle what is watched, on rows from the time when the model was judged.

        Checks, their scales and their weights come from predictions and covariates of the
        reference alone. Its labels serve one of the recalibrations that bet, and nothing else.

        Parameters
        ----------
        reference : Sample, MulticlassSample, Scan or MulticlassScan
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
        rng : int, Generator or None
            Kept as `seed`, below 2**64; nothing is drawn as yet.

        Returns
        -------
        Watch
            Before its first batch.
        """
        kept = Promise(checked_choice(promise, "promise", [str(word) for word in Promise]))
        bias = None if tolerance is None else checked_share(tolerance, "tolerance")
        taken = taken_reference(reference)
        own = class_tasks(written_tasks(as_tasks(tasks)), few_rows(taken))
        segment = Segment(0, checked_name(name), 1, 0, taken.n, taken.digest)
        panels, wealth, sequences = begun(taken, own, kept, bias)
        return cls(
            checked_alpha(alpha),
            bias,
            kept,
            checked_seed(rng),
            taken.schema,
            panels,
            wealth,
            sequences,
            (),
            (segment,),
            {},
        )

    def update(
        self,
        batch: Sample | MulticlassSample | Scan | MulticlassScan,
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
        batch : Sample, MulticlassSample, Scan or MulticlassScan
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
        taken = taken_batch(batch, self.schema)
        start, end = time_range(at)
        told = checked_name(name)
        refuse_repeated(self.history, self.segments, taken, told)
        if not late:
            refuse_order(self.history, self.segments[-1], start, end)
        return self._after(taken, told, start, end, late)

    def _after(
        self, batch: TakenBatch, name: str | None, start: str | None, end: str | None, late: bool
    ) -> Self:
        segment = self.segments[-1]
        restarts = self.promise is Promise.RUN_LENGTH and self.alarm
        count = 1 if restarts else self._since_begun + 1
        wealth = tuple(
            self._bet(panel, own, batch, count, restarts)
            for panel, own in zip(self.panels, self.wealth, strict=True)
        )
        impossible = 0 if self.tolerance is not None else batch.impossible
        log_evalue = math.inf
        if not impossible and (restarts or self._log_evalue < math.inf):
            log_evalue = total_of(self.panels, wealth, count, self.promise)
        peak = log_evalue if restarts else max(self._log_peak, log_evalue)
        reached = log_evalue >= -math.log(self.alpha)
        first = self.promise is Promise.RUN_LENGTH or not segment.alarms
        number = len(self.history) + 1
        label, predicted = batch.means
        record = BatchRecord(
            number,
            name,
            batch.rows.n,
            label,
            predicted,
            log_evalue,
            peak,
            segment.number,
            bool(late),
            batch.digest,
            start,
            end,
            impossible,
            reached and first,
        )
        by_label = {
            label: batch.of(label)[2]
            for own in self.sequences
            for label in dict.fromkeys(leaf.leaf.label for leaf in own.leaves)
        }
        sequences = tuple(own.after(by_label) for own in self.sequences)
        found = replace(
            self,
            wealth=wealth,
            sequences=sequences,
            history=(*self.history, record),
            segments=(*self.segments[:-1], replace(segment, batches=segment.batches + 1)),
        )
        return found._with_alarm() if record.raised else found

    def _bet(
        self, panel: CheckPanel, own: PanelWealth, batch: TakenBatch, count: int, restarts: bool
    ) -> PanelWealth:
        return own.after(
            panel,
            batch.parts(panel),
            count,
            self.promise,
            self.tolerance or 0.0,
            restarts=restarts,
        )

    def _with_alarm(self) -> Self:
        last, segment = self.history[-1], self.segments[-1]
        since = None if last.log_evalue == math.inf else self._onset()
        alarm = RaisedAlarm(last.number, last.log_evalue, since)
        changed = replace(segment, alarms=(*segment.alarms, alarm))
        return replace(self, segments=(*self.segments[:-1], changed))

    def new_model(
        self,
        reference: Sample | MulticlassSample | Scan | MulticlassScan,
        name: str | None = None,
    ) -> Self:
        """Watch another model from now on; the history stays.

        A new segment has its own reference, checks, evidence and numbers, and its own error alpha.

        Parameters
        ----------
        reference : Sample, MulticlassSample, Scan or MulticlassScan
            Labelled rows of the new model.
        name : str, optional
            Of the model. Default: it has none.

        Returns
        -------
        Watch
            Before the first batch of the new model.
        """
        taken = taken_reference(reference)
        last = self.segments[-1]
        if not last.batches and last.reference_digest == taken.digest:
            raise InputError(
                "{argument}: these rows are the reference of the present model already, which has "
                "seen no batch yet; go on with its first batch",
                argument="reference",
            )
        tasks = class_tasks([own.task for own in self.sequences], few_rows(taken))
        panels, wealth, sequences = begun(taken, tasks, self.promise, self.tolerance)
        segment = Segment(
            len(self.segments),
            checked_name(name),
            len(self.history) + 1,
            0,
            taken.n,
            taken.digest,
        )
        return replace(
            self,
            schema=taken.schema,
            panels=panels,
            wealth=wealth,
            sequences=sequences,
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
            Where to; JSON of the schema "itrust-watch/1".

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
        from itrust.watch.loading import loaded_watch

        return loaded_watch(Path(path))
