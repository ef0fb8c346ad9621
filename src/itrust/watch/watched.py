"""What a watch has seen and what it says of it: values that follow from its state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from itrust._core import Result, checked_alpha
from itrust.watch.batches import BatchSchema
from itrust.watch.components import CheckPanel
from itrust.watch.evidence import MAX_LOG, exp_of, findings_of
from itrust.watch.onset import since_of
from itrust.watch.results import (
    BatchRecord,
    NumberSoFar,
    Onset,
    Promise,
    Segment,
    WatchFinding,
    running_batches,
)
from itrust.watch.sequences import TaskSequence
from itrust.watch.wealth import PanelWealth


@dataclass(frozen=True, eq=False, repr=False)
class WatchedModel(Result):
    """The state of a watch, and all that can be read from it.

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
    panels, wealth : tuple
        The checks of every class, and what their bets have become.
    sequences : tuple of TaskSequence
        Sums behind the numbers so far.
    """

    alpha: float
    tolerance: float | None
    promise: Promise
    seed: int
    schema: BatchSchema
    panels: tuple[CheckPanel, ...]
    wealth: tuple[PanelWealth, ...]
    sequences: tuple[TaskSequence, ...]
    history: tuple[BatchRecord, ...]
    segments: tuple[Segment, ...]
    source: Mapping[str, Any]

    @property
    def present(self) -> list[BatchRecord]:
        """The batches of the present model."""
        first = self.segments[-1].first
        return list(self.history[first - 1 :])

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Covariates that no check reads by themselves: they are too many, or do not vary enough.

        What differs along them is found only as far as other checks see it.
        """
        read = {check.covariates for panel in self.panels for check in panel.checks}
        return tuple(name for name in self.schema.names if (name,) not in read)

    @property
    def running(self) -> list[BatchRecord]:
        """The batches since bets began: all of the model, or those since the alarm before this."""
        return running_batches(self.present, self.promise)

    @property
    def _since_begun(self) -> int:
        return len(self.running)

    @property
    def _log_evalue(self) -> float:
        own = self.present
        if own:
            return own[-1].log_evalue
        return 0.0 if self.promise is Promise.EVER else -math.inf

    @property
    def _log_peak(self) -> float:
        own = self.present
        if own:
            return own[-1].log_peak
        return 0.0 if self.promise is Promise.EVER else -math.inf

    @property
    def log_evalue(self) -> float:
        """Logarithm of `evalue`."""
        return self._log_evalue

    @property
    def evalue(self) -> float:
        """The evidence now: 1 before the first batch; with a run length a sum that begins at 0.

        Infinite where a label occurred that the model had given probability 0.
        """
        return exp_of(self._log_evalue)

    @property
    def pvalue(self) -> float | None:
        """One over the largest evidence of this model so far, at most 1; valid at any time.

        None where the promise is a run length, which has no p-value.
        """
        if self.promise is Promise.RUN_LENGTH:
            return None
        return (
            min(1.0, math.exp(-min(self._log_peak, MAX_LOG))) if self._log_peak < math.inf else 0.0
        )

    @property
    def alarm(self) -> bool:
        """Whether the evidence has reached 1 / alpha; with a run length, in the last batch."""
        own = self.present
        if self.promise is Promise.RUN_LENGTH:
            return bool(own) and own[-1].raised
        return bool(self.segments[-1].alarms)

    @property
    def impossible(self) -> int:
        """Number of labels that the model had given probability 0, since bets began."""
        return sum(record.impossible for record in self.running)

    @property
    def since(self) -> Onset | None:
        """Since when the model has been miscalibrated, as the alarm has it; None without alarm.

        Batches after the alarm do not move it. None as well where labels of probability 0 raised
        the alarm.
        """
        return self.segments[-1].alarms[-1].since if self.alarm else None

    def _onset(self) -> Onset:
        """Since when, by the leading check of all batches since bets began."""
        names = [(record.number, record.name) for record in self.running]
        return since_of(self.panels, self.wealth, len(names), names, self.alpha, self.promise)

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
        found = [
            finding
            for panel, own in zip(self.panels, self.wealth, strict=True)
            for finding in findings_of(panel, own, len(self.panels), self.promise)
        ]
        return tuple(sorted(found, key=lambda f: -f.weight * f.evalue))

    @property
    def tasks(self) -> tuple[NumberSoFar, ...]:
        """Each number so far in the time of this model, with a confidence sequence."""
        return tuple(own.so_far(self.alpha) for own in self.sequences)

    def _facts(self) -> Mapping[str, Any]:
        since = self.since
        return {
            "schema": "itrust-watch-result/1",
            "alpha": self.alpha,
            "tolerance": self.tolerance,
            "promise": str(self.promise),
            "evalue": self.evalue,
            "log_evalue": self.log_evalue,
            "pvalue": self.pvalue,
            "alarm": self.alarm,
            "impossible": self.impossible,
            "since": None if since is None else since.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings()],
            "tasks": [number.to_dict() for number in self.tasks],
            "checks": sum(len(panel.checks) for panel in self.panels),
            "unchecked": list(self.unchecked),
            "history": [record.to_dict() for record in self.history],
            "segments": [segment.to_dict() for segment in self.segments],
        }

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [record.to_dict() for record in self.history]

    def __repr__(self) -> str:
        said = "alarm" if self.alarm else "no alarm"
        return f"<Watch: {len(self.history):,} batches, evidence {self.evalue:.3g}, {said}>"
