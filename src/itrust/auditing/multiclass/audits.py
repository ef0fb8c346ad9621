"""`MulticlassAudit`: everything that an audit of more than two classes found."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from itrust import __version__
from itrust._core import InputError, Result, did_you_mean
from itrust.auditing.disclosure import MIN_CELL
from itrust.auditing.multiclass.comparison import ClassesComparison
from itrust.auditing.multiclass.disclosure import ClassesWithheld, disclosed_classes
from itrust.auditing.multiclass.judging import judge_classes
from itrust.auditing.multiclass.measuring import (
    ClassDraws,
    class_parts,
    classes_missed,
    classes_overall,
    classes_test,
    pairs_of,
)
from itrust.auditing.multiclass.parts import FAMILY, ClassesMissed, ClassesOverall, ClassPart
from itrust.auditing.multiclass.taken import ClassMatrix
from itrust.auditing.overturning import Overturning, Untold
from itrust.auditing.parts import Provenance
from itrust.auditing.schemas import CLASSES_SCHEMA
from itrust.auditing.stages import classes_steps, shown_steps
from itrust.auditing.verdict import KINDS, ClassEvidence, Evidence, Judgement, Verdict
from itrust.calibration import MulticlassResult
from itrust.data import MulticlassSample
from itrust.engines import one_blas_thread
from itrust.tasks import Task, TaskResult, check_tasks, covered, evaluate_tasks


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassAudit(Result):
    """Everything that `audit` found about more than two classes.

    The verdict follows the test of all classes together; what carries it names its class. Means,
    groups and slices of one class against the rest hold for all classes at once.

    Attributes
    ----------
    sample : MulticlassSample
        The rows that were audited.
    n : int
        Their number.
    classes : tuple
        Names of the classes.
    alpha : float
        Error that is allowed in tests and intervals.
    tolerance : float
        The size of local bias that matters.
    draws, seed : int
        Number of redraws of the labels; `audit(sample, ..., rng=a.seed)` makes the audit again.
    elapsed : float
        Seconds that it took.
    test : MulticlassResult
        Are all classes calibrated given the covariates?
    overall : ClassesOverall
        Whatever the covariates: the top label, and all classes together.
    parts : tuple of ClassPart
        One for each class: mean, reliability, local bias, groups and slices.
    taken_for : ClassMatrix
        Which class is taken for which, and where.
    missed : ClassesMissed or None
        How small a bias of a class would have been shown; None where that is not known.
    tasks : tuple of TaskResult
        What the model does to the user's own numbers.
    judgement : Judgement
        The verdict with its evidence.
    comparison : ClassesComparison or None
        Of several models on the same rows, if one was added with `extended`.
    provenance : Provenance or None
        How to make the audit again, if that was added with `extended`.
    robustness : Overturning or None
        Why it is not told what would overturn the audit (`robustness.untold`); None where that was
        not asked for.
    withheld : ClassesWithheld or None
        How many entries disclosure control took out; None before it was applied.
    whole : MulticlassAudit or None
        The audit before disclosure control; no rendering and no file reads it.
    """

    sample: MulticlassSample
    n: int
    classes: tuple[Any, ...]
    alpha: float
    tolerance: float
    draws: int
    seed: int
    elapsed: float
    test: MulticlassResult
    overall: ClassesOverall
    parts: tuple[ClassPart, ...]
    taken_for: ClassMatrix
    missed: ClassesMissed | None
    tasks: tuple[TaskResult, ...]
    judgement: Judgement
    comparison: ClassesComparison | None = None
    provenance: Provenance | None = None
    robustness: Overturning | None = None
    withheld: ClassesWithheld | None = None
    whole: MulticlassAudit | None = None

    @property
    def verdict(self) -> Verdict:
        """What the audit comes to."""
        return self.judgement.verdict

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What carries the verdict, the strongest first; each names its class."""
        return self.judgement.evidence

    @property
    def shown_classes(self) -> tuple[Any, ...]:
        """Classes that the test shows to be miscalibrated, adjusted for all classes."""
        return tuple(part.name for part in self.parts if part.test.pvalue <= self.alpha)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, to be quoted in a report."""
        from itrust.render import sentence_of

        return sentence_of(self.judgement)

    @property
    def action(self) -> str:
        """What to do next about the model, in one sentence."""
        from itrust.render import action_of

        return action_of(self.judgement)

    @property
    def summary(self) -> str:
        """Rows, classes, accuracy and confidence in one line."""
        from itrust.render import classes_summary

        return classes_summary(self)

    def __getitem__(self, name: Any) -> ClassPart:
        for part in self.parts:
            if part.name == name:
                return part
        known = [str(part.name) for part in self.parts]
        raise InputError(
            "there is no class {value}; {guess}",
            argument="name",
            value=name,
            details={"guess": did_you_mean(str(name), known)},
        )

    def extended(
        self,
        *,
        comparison: ClassesComparison | None = None,
        provenance: Provenance | None = None,
    ) -> MulticlassAudit:
        """Add what is to be shown beside the audit.

        Parameters
        ----------
        comparison : ClassesComparison, optional
            Of several models on the same rows (`itrust.compare`).
        provenance : Provenance, optional
            How to make the audit again.

        Returns
        -------
        MulticlassAudit
            A copy; what is not given stays as it is. Where disclosure control was applied, it is
            applied to what is added, too.
        """
        given = {
            "comparison": (comparison, ClassesComparison, "itrust.compare"),
            "provenance": (provenance, Provenance, "itrust.auditing.Provenance"),
        }
        changes: dict[str, Any] = {}
        for name, (value, kind, maker) in given.items():
            if value is not None and not isinstance(value, kind):
                raise InputError(f"{name} must come from {maker}, not a {type(value).__name__}")
            if value is not None:
                changes[name] = value
        if self.whole is None or self.withheld is None:
            return replace(self, **changes)
        return replace(self.whole, **changes).disclosed(self.withheld.min_cell)

    def disclosed(self, min_cell: int = MIN_CELL) -> MulticlassAudit:
        """Take out what rests on few rows of a class: see `itrust.auditing.Disclosure`.

        Parameters
        ----------
        min_cell : int
            Fewest rows behind anything that is shown, of a class and of the others; 1 shows
            everything.

        Returns
        -------
        MulticlassAudit
            A copy whose `withheld` counts what was taken out. Of several calls the largest
            `min_cell` counts.
        """
        return disclosed_classes(self, min_cell)

    def to_html(self, path: str | os.PathLike[str], *, min_cell: int | None = None) -> Path:
        """Write the audit as one self-contained page.

        Parameters
        ----------
        path : str or path
            Where to write; written whole or not at all.
        min_cell : int, optional
            Fewest rows behind anything that is shown; default: what disclosure control was
            applied with, otherwise 10.

        Returns
        -------
        Path
            Of the page.
        """
        from itrust.render.page import write

        return write(self, path, min_cell=min_cell)

    def _facts(self) -> dict[str, Any]:
        from itrust.render import classes_missed_words, task_sentence, task_title, untold_facts

        comparison = self.comparison
        return {
            "schema": CLASSES_SCHEMA,
            "version": __version__,
            "summary": self.summary,
            "n": self.n,
            "classes": [str(name) for name in self.classes],
            "on": list(self.test.names),
            "verdict": self.verdict.value,
            "refuted": self.judgement.refuted,
            "sentence": self.sentence,
            "action": self.action,
            "shown_classes": [str(name) for name in self.shown_classes],
            "evidence": [self._told(item) for item in self.evidence],
            "pvalue": self.test.pvalue,
            "alpha": self.alpha,
            "tolerance": self.tolerance,
            "draws": self.draws,
            "seed": self.seed,
            "family": FAMILY,
            "test": self._test_told(),
            "overall": self.overall.to_dict(),
            "parts": [
                {**part.to_dict(), "findings": [str(f) for f in part.test.evidence(self.alpha)]}
                for part in self.parts
            ],
            "taken_for": self.taken_for.to_dict(),
            "missed": None if self.missed is None else self.missed.to_dict(),
            "about_missed": classes_missed_words(self),
            "tasks": [
                {
                    **task.to_dict(),
                    "title": task_title(task),
                    "formula": task.task.formula,
                    "sentence": task_sentence(task),
                }
                for task in self.tasks
            ],
            "comparison": None if comparison is None else comparison.to_dict(),
            "robustness": untold_facts(self.robustness),
            "provenance": None if self.provenance is None else dict(vars(self.provenance)),
            "withheld": None if self.withheld is None else self.withheld.to_dict(),
        }

    def _test_told(self) -> dict[str, Any]:
        """The test, with null for numbers of rows that are withheld."""
        found = self.test.to_dict()
        for part, own in zip(self.parts, found["classes"], strict=True):
            if part.rows is None:
                own["positives"] = None
        return found

    def _told(self, item: Evidence) -> dict[str, Any]:
        from itrust.render import evidence_words

        name, own = (item.name, item.item) if isinstance(item, ClassEvidence) else (None, item)
        return {
            "class": None if name is None else str(name),
            "kind": KINDS.get(type(own), "taken for"),
            "text": evidence_words(item, self.tolerance),
        }

    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [
            {"part": "verdict", "name": self.verdict.value, "text": self.sentence},
            {"part": "test", "name": "all together", "pvalue": self.test.pvalue},
            {
                "part": "overall",
                "name": "accuracy - confidence",
                **_numbers(self.overall.top.mean),
            },
        ]
        for part in self.parts:
            name = str(part.name)
            rows.append({"part": "class", "class": name, "rows": part.rows, **_numbers(part.mean)})
            rows.append({"part": "test", "class": name, "pvalue": part.test.pvalue})
            tables: list[tuple[str, Any]] = [
                ("group", part.diagnosis.groups or ()),
                ("slice", part.diagnosis.slices),
            ]
            for kind, table in tables:
                rows += [
                    {
                        "part": kind,
                        "class": name,
                        "name": str(own.where),
                        "rows": own.rows,
                        **_numbers(own),
                    }
                    for own in table
                ]
        for pair in self.taken_for.pairs:
            rows.append(
                {
                    "part": "taken for",
                    "class": str(pair.label),
                    "name": str(pair.taken_for),
                    "rows": pair.rows,
                    **_numbers(pair),
                }
            )
        rows += [{"part": "task", "name": own.name, **_numbers(own)} for own in self.tasks]
        return [{name: row.get(name) for name in TABLE} for row in rows]

    def __repr__(self) -> str:
        return f"<MulticlassAudit: {self.verdict.value}, n {self.n:,}, {len(self.classes)} classes>"


TABLE = ("part", "class", "name", "value", "lower", "upper", "pvalue", "rows", "text")


def _numbers(own: Any) -> dict[str, Any]:
    return {"value": own.bias, "lower": own.lower, "upper": own.upper, "pvalue": own.pvalue}


def audit_classes(
    sample: MulticlassSample,
    names: Sequence[str],
    tasks: Sequence[Task],
    *,
    alpha: float,
    tolerance: float,
    draws: int,
    seed: int,
    robustness: bool,
    progress: bool | None,
) -> MulticlassAudit:
    """Audit more than two classes; everything but the tasks has been checked."""
    begun = time.perf_counter()
    rows: Any = sample
    if tasks:
        check_tasks(rows, tasks, is_all=True)
    judged: MulticlassSample = rows if tuple(names) == sample.names else rows.only(*names)
    settings = ClassDraws(alpha, draws, seed, len(sample.classes))
    steps = classes_steps(sample, draws, len(tasks))
    with one_blas_thread(), shown_steps(steps, progress) as begin:
        stages = iter(steps)
        begin(next(stages))
        test = classes_test(judged, settings)
        begin(next(stages))
        parts = class_parts(judged, test, settings)
        begin(next(stages))
        pairs = pairs_of(judged, parts, settings)
        overall = classes_overall(judged, test, pairs, settings)
        missed = classes_missed(judged, parts, alpha)
        numbers: tuple[TaskResult, ...] = ()
        if tasks:
            begin(next(stages))
            found = evaluate_tasks(rows, tasks, alpha=alpha, draws=draws, rng=seed)
            numbers = tuple(covered(own, names) for own in found)
    limits: dict[str, Any] = {"alpha": alpha, "tolerance": tolerance}
    judgement = judge_classes(test, parts, missed, numbers, n=sample.n, **limits)
    untold = Untold.SEVERAL_CLASSES if judgement.refuted else Untold.NOT_REJECTED
    return MulticlassAudit(
        sample=sample,
        n=sample.n,
        classes=tuple(sample.classes),
        draws=draws,
        seed=seed,
        test=test,
        overall=overall,
        parts=parts,
        taken_for=pairs,
        missed=missed,
        tasks=numbers,
        judgement=judgement,
        elapsed=time.perf_counter() - begun,
        robustness=Overturning((), None, (), untold) if robustness else None,
        **limits,
    )
