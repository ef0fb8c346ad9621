"""`audit`: calibration overall and given covariates, what was missed, where, and a verdict."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from itrust import __version__
from itrust._core import (
    Advance,
    Begin,
    InputError,
    Provenance,
    Result,
    Rng,
    as_seed,
    checked_reach,
    checked_share,
    place_of,
    progress_stages,
)
from itrust.auditing.arguments import Tasks, asked_of, refuse_binary_settings
from itrust.auditing.charts import Charts, charts_of
from itrust.auditing.comparison import Comparison
from itrust.auditing.disclosure import Withheld, disclosed
from itrust.auditing.measuring import (
    AuditDraws,
    measured_by_design,
    measured_classes,
    measured_together,
    unsettled,
)
from itrust.auditing.overturning import Overturning, overturning_of
from itrust.auditing.pairs import ClassMatrix
from itrust.auditing.parts import FAMILY, SCORES, Diagnosis, Missed, OutcomePart, Overall
from itrust.auditing.schemas import SCHEMA
from itrust.auditing.stages import audit_steps, step_words
from itrust.auditing.verdict import (
    KINDS,
    ClassEvidence,
    Evidence,
    Judgement,
    Verdict,
    judge,
    telling,
)
from itrust.balance import Resemblance
from itrust.calibration import (
    Autocorrelation,
    Validation,
    refuse_many_grades,
    residual_autocorrelation,
)
from itrust.data import (
    DESIGN_ROWS,
    Covariates,
    Extract,
    MissingRule,
    Population,
    Sample,
    Scan,
    short,
)
from itrust.engines import Engine, EngineChoice, as_engine, one_blas_thread
from itrust.recalibrate import RecalibrationTable
from itrust.tasks import TaskResult, check_tasks, covered

MAX_FINDINGS = 20  # rows of findings in the table
MIN_TIMES = 10  # days that tell whether residuals go together in time
EXTREMES = ("smallest", "largest")  # local biases, which have two digits under disclosure control
MAX_BARS = 30  # groups of a covariate in its chart


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """Everything that `audit` found: values, which terminal, notebook, page and files render.

    Attributes
    ----------
    sample : Sample or MulticlassSample
        The rows that were audited; of more than 100,000, as many random ones of them.
    n : int
        Number of rows that were audited.
    alpha : float
        Error that is allowed in tests and intervals.
    tolerance : float
        The size of local bias that matters.
    draws : int
        Number of redraws of the labels.
    seed : int
        `audit(sample, ..., rng=a.seed)` makes the audit again.
    elapsed : float
        Seconds that it took.
    overall : Overall
        Are the probabilities calibrated overall? Scores and the reliability curve.
    test : CalibrationResult or MulticlassResult
        Are they calibrated given the covariates, all outcomes together?
    parts : tuple of OutcomePart
        One for each outcome: of two labels one, of several classes each against the rest. Each
        has its test, mean, curve, local bias, groups, slices and charts.
    missed : Missed
        How small a bias would have been seen.
    tasks : tuple of TaskResult
        What the model does to the user's own numbers.
    judgement : Judgement
        The verdict with its evidence.
    pairs : ClassMatrix or None
        Of several classes, which is taken for which, and where; None of two labels.
    autocorrelation : mapping of str to Autocorrelation
        By the name of a covariate that is a date: whether residuals of one day go with those of
        the next that has rows.
    validation : Validation or None
        What validators print about the predictions alone (`itrust.scores.validation`), each with an
        error of its own and no part of the verdict; None where it was not asked for.
    comparison : Comparison or None
        Of several models on the same rows, if one was added with `extended`.
    recalibration : RecalibrationTable or None
        Recalibrators on held-out rows, if they were added with `extended`.
    provenance : Provenance or None
        How to make the audit again, if that was added with `extended`.
    withheld : Withheld or None
        What disclosure control did; None before it was applied.
    whole : Audit or None
        The audit before disclosure control; no rendering and no file reads it.
    rows_left_out : int
        Rows of a large design that are in clusters which were not chosen.
    resemblance : Resemblance or None
        Whether the rows are like the population that numbers are wanted for; None where no
        population was given.
    robustness : Overturning or None
        How large a selection of rows, a share of labels in error or a tolerance would have to be
        to overturn what was found; None where it was not asked for.
    """

    sample: Any
    n: int
    alpha: float
    tolerance: float
    draws: int
    seed: int
    elapsed: float
    overall: Overall
    test: Any
    parts: tuple[OutcomePart, ...]
    missed: Missed
    tasks: tuple[TaskResult, ...]
    judgement: Judgement
    pairs: ClassMatrix | None = None
    autocorrelation: Mapping[str, Autocorrelation] = field(default_factory=dict)
    validation: Validation | None = None
    comparison: Comparison | None = None
    recalibration: RecalibrationTable | None = None
    provenance: Provenance | None = None
    withheld: Withheld | None = None
    whole: Audit | None = None
    rows_left_out: int = 0
    resemblance: Resemblance | None = None
    robustness: Overturning | None = None

    @property
    def rows_available(self) -> int:
        """Rows that there are; more than `n` where random clusters of a large design were used."""
        return self.n + self.rows_left_out

    @property
    def rows_at_hand(self) -> int:
        """Rows that what needs rows in memory was made from."""
        return self.parts[0].diagnosis.bias.sample.n

    @property
    def classes(self) -> tuple[Any, ...]:
        """Names of the classes, where there are several; empty where there are two labels."""
        return tuple(part.name for part in self.parts) if len(self.parts) > 1 else ()

    @property
    def shown_classes(self) -> tuple[Any, ...]:
        """Classes that the test shows to be miscalibrated, adjusted for all classes."""
        return tuple(
            own.name for own in self.parts if self.classes and own.test.pvalue <= self.alpha
        )

    def __getitem__(self, name: Any) -> OutcomePart:
        names, problem = [part.name for part in self.parts], "there is no class {value}; {guess}"
        return self.parts[place_of(name, names, problem, argument="name")]

    @property
    def _only(self) -> OutcomePart:
        if len(self.parts) == 1:
            return self.parts[0]
        raise InputError("there are several classes: take the part of one with audit[name]")

    @property
    def diagnosis(self) -> Diagnosis:
        """Where, for whom and by how much, of two labels: local bias, groups and slices."""
        return self._only.diagnosis

    @property
    def charts(self) -> Charts:
        """The numbers behind the charts of the page, of two labels."""
        found = self._only.charts
        assert found is not None
        return found

    @property
    def verdict(self) -> Verdict:
        """What the audit comes to."""
        return self.judgement.verdict

    @property
    def pvalue(self) -> float:
        """Of the test whether the probabilities are calibrated given the covariates."""
        return float(self.test.pvalue)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What carries the verdict, from plain to fine."""
        return self.judgement.evidence

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
        """Rows, mean prediction or confidence, observed rate and overall bias in one line."""
        from itrust.render import summary_of

        return summary_of(self)

    def extended(
        self,
        *,
        comparison: Comparison | None = None,
        recalibration: RecalibrationTable | None = None,
        provenance: Provenance | None = None,
    ) -> Audit:
        """Add what is to be shown beside the audit.

        Parameters
        ----------
        comparison : Comparison, optional
            Of several models on the same rows (`itrust.compare`).
        recalibration : RecalibrationTable, optional
            Recalibrators on held-out rows (`itrust.recalibrate.compare`).
        provenance : Provenance, optional
            How to make the audit again.

        Returns
        -------
        Audit
            A copy; what is not given stays as it is. Where disclosure control was applied, it is
            applied to what is added, too.
        """
        given = {
            "comparison": (comparison, Comparison, "itrust.compare"),
            "recalibration": (recalibration, RecalibrationTable, "itrust.recalibrate.compare"),
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
        whole = replace(self.whole, **changes)
        return disclosed(whole, self.withheld.min_cell, self.withheld.seed)

    def disclosed(self, min_cell: int | None, seed: int | None = None) -> Audit:
        """Make the audit fit to leave the house, by cell keys.

        What rests on fewer than `min_cell` rows is left out, and whatever is shown of other rows is
        off by a noise that belongs to the set of rows: counts and sums by 4 rows at most, rates
        of 100 rows or more by .01 at most. The same rows always show the same numbers, no
        difference of two is exact, and intervals are wider by the noise. The verdict and the
        p-values of the tests stay. It is no differential privacy.

        Parameters
        ----------
        min_cell : int or None
            Fewest rows behind anything that is shown; None shows everything as it is.
        seed : int, optional
            Of the noise, to be kept with the file and to be kept secret: many seeds average out.
            Default: one that is made of the labels and predictions.

        Returns
        -------
        Audit
            A copy whose `withheld` counts what was left out; it still holds the sample. Of several
            calls the largest `min_cell` counts.
        """
        return self if min_cell is None else disclosed(self, min_cell, seed)

    def _facts(self) -> dict[str, Any]:
        from itrust.render import (
            about_findings,
            overturning_facts,
            resemblance_facts,
            seen,
            task_sentence,
            task_title,
            validation_sentence,
        )

        several, test = bool(self.classes), self.test.to_dict()
        if self.withheld is not None:  # more digits would tell labels
            test["score"] = short(test["score"])
        validation = None
        if self.validation is not None:
            validation = {**self.validation.to_dict(), "sentence": validation_sentence(self)}
        missed = {
            **self.missed.to_dict(),
            "would_be_seen": self.judgement.would_be_seen,
            "sentence": seen(self.missed),
        }
        about = None if several else about_findings(self)
        return {
            "schema": SCHEMA,
            "version": __version__,
            "summary": {"rows": self.n, **self.overall.mean.to_dict(), "text": self.summary},
            **self._by_name("n", "rows_at_hand", "rows_available"),
            "design": self.sample.design,
            "classes": [str(name) for name in self.classes],
            "shown_classes": [str(name) for name in self.shown_classes],
            "family": FAMILY if several else None,
            "on": list(self.test.names),
            "verdict": self.verdict.value,
            "refuted": self.judgement.refuted,
            "sentence": self.sentence,
            "action": self.action,
            "evidence": [self._evidence_facts(item) for item in self.evidence],
            "statistic": self.test.statistic,
            "pvalue": self.test.pvalue,
            **self._by_name("alpha", "tolerance", "draws", "seed", "overall"),
            "test": {**test, "about_findings": about},
            "missed": missed,
            "parts": [self._part_facts(part) for part in self.parts],
            "pairs": self.pairs,
            "tasks": [
                {
                    **task.to_dict(),
                    "title": task_title(task),
                    "formula": task.task.formula,
                    "sentence": task_sentence(task),
                }
                for task in self.tasks
            ],
            "autocorrelation": self.autocorrelation,
            "validation": validation,
            "resemblance": self.resemblance and resemblance_facts(self.resemblance),
            "robustness": overturning_facts(self),
            **self._by_name("comparison", "recalibration", "provenance", "withheld"),
        }

    def _evidence_facts(self, item: Evidence) -> dict[str, Any]:
        from itrust.render import evidence_words

        name, own = (item.name, item.item) if isinstance(item, ClassEvidence) else (None, item)
        return {
            **(own.to_dict() if hasattr(own, "to_dict") else vars(own)),
            "kind": KINDS[type(own)],
            "text": evidence_words(item),
            "class": None if name is None else str(name),
        }

    def _part_facts(self, part: OutcomePart) -> dict[str, Any]:
        """One outcome."""
        test, found = part.test, part.diagnosis.to_dict()
        if self.withheld is not None:
            local = found["local_bias"]
            found["local_bias"] = local | {n: local[n] and short(local[n], 2) for n in EXTREMES}
        return {
            "name": str(part.name),
            "rows": part.rows,
            "statistic": test.statistic,
            "pvalue": test.pvalue,
            "mean": part.mean,
            "ece": part.ece,
            "curve": vars(part.curve),
            "slope": part.slope,
            "findings": [str(finding) for finding in test.evidence(self.alpha)],
            "diagnosis": found,
            "charts": part.charts and {**_bars(part), **part.charts.to_dict()},
        }

    def _rows(self) -> list[dict[str, Any]]:
        # `value` is the score or, for means, groups, slices, pairs and tasks, the bias.
        rows: list[dict[str, Any]] = [
            {"part": "verdict", "name": self.verdict.value, "text": self.sentence},
            *({"part": "overall", "name": s, "value": getattr(self.overall, s)} for s in SCORES),
            {"part": "overall", "name": "test", "pvalue": self.overall.pvalue},
            {
                "part": "test",
                "name": "KLCE^2",
                "value": self.test.statistic,
                "pvalue": self.test.pvalue,
            },
        ]
        for part in self.parts:
            name = str(part.name) if self.classes else None
            found: list[dict[str, Any]] = []
            if self.classes:
                mean = _table_row("class", part.mean) | {"rows": part.rows}
                found += [mean, {"part": "test", "pvalue": part.test.pvalue}]
            found += [
                {"part": "finding", "name": own.name, "pvalue": own.pvalue, "text": str(own)}
                for own in part.test.findings[:MAX_FINDINGS]
            ]
            found += [_table_row("group", own) for own in part.diagnosis.groups or ()]
            found += [_table_row("slice", own) for own in part.diagnosis.slices]
            rows += [{**row, "class": name} for row in found]
        for pair in () if self.pairs is None else self.pairs.pairs:
            told = {"class": str(pair.label), "name": str(pair.taken_for)}
            rows.append(_table_row("taken for", pair) | told)
        rows += [_table_row("task", task) for task in self.tasks]
        columns = [name for name in TABLE if self.classes or name != "class"]
        return [{name: row.get(name) for name in columns} for row in rows]

    def to_html(self, path: str | os.PathLike[str], *, min_cell: int | None = None) -> Path:
        """Write the audit as one self-contained page.

        Parameters
        ----------
        path : str or path
            Where to write; written whole or not at all.
        min_cell : int, optional
            Applies disclosure control first, as `disclosed` does. Default: the audit is shown as
            it is.

        Returns
        -------
        Path
            Of the page.
        """
        from itrust.render.page import write

        return write(self, path, min_cell=min_cell)

    def __repr__(self) -> str:
        several = f", {len(self.classes)} classes" if self.classes else ""
        return f"<Audit: {self.verdict.value}, n {self.n:,}{several}>"


def _bars(part: OutcomePart) -> dict[str, Any]:
    """Numbers of charts that other parts hold: the reliability curve and groups by covariate."""
    by_covariate: dict[str, list[Any]] = {}
    for group in part.diagnosis.groups or ():
        by_covariate.setdefault(group.names[0], []).append(group)
    bars = [{"name": name, "groups": own[:MAX_BARS]} for name, own in by_covariate.items()]
    return {"reliability": vars(part.curve), "groups": bars}


TABLE = (
    *("part", "class", "name", "value", "lower", "upper", "pvalue", "rows"),
    *("plugin", "from_labels", "text"),
)


def _table_row(part: str, item: Any) -> dict[str, Any]:
    facts = {column: getattr(item, column, None) for column in TABLE}
    name, text = facts["name"] or getattr(item, "rule", None), getattr(item, "finding", None)
    return {**facts, "part": part, "name": name, "value": item.bias, "text": text}


def audit(
    sample: Any,
    X: object = None,
    y: object = None,
    *,
    tasks: Tasks = (),
    on: Covariates | None = None,
    pos_label: object = None,
    weights: object = None,
    cluster: object = None,
    strata: object = None,
    missing: MissingRule = "error",
    cv: object = None,
    alpha: float = 0.05,
    tolerance: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
    charts: bool = True,
    validation: bool = True,
    robustness: bool = True,
    grades: object = None,
    population: Population | Scan | None = None,
    progress: bool | None = None,
) -> Audit:
    """Judge a model's probabilities for inference about the covariates, and for your own numbers.

    Takes a sample, `audit(sample, tasks)`, rows of files, `audit(scan(...), tasks)`, or a model and
    rows that it was not trained on, `audit(model, X, y, tasks=...)`. Everything is validated before
    anything costly begins.

    P-values, scores, groups, local bias and tasks are from all rows. What must see rows at hand
    (the search for slices, curves and maps, and what could have been missed) takes 100,000 random
    ones of more, chosen without a look at labels; slices are judged by all others. So files of any
    size are audited in a few passes, with the result of rows in memory. Rows of a design (clusters,
    strata, replicate weights) are loaded, for clusters have to stay whole; of more than 500,000,
    those of random clusters are audited (`Sample.some_clusters`), and a note says so.

    Of more than two classes, all are tested together, and each against the rest (`audit.parts`). A
    `MulticlassSample` of two classes gives the audit of the second.

    Parameters
    ----------
    sample : Sample, Scan, MulticlassSample or classifier with predict_proba
        Labels, probabilities and covariates, in memory or in files; or a model with scikit-learn's
        conventions, fitted (unless `cv`) to other rows than X. Whether it was cannot be seen from
        the outside.
    X : frame or (n, d) array; beside a sample: tasks
        The features of the model's rows. With a sample, tasks may stand in this place; by default
        there are none.
    y : column of n labels, optional
        The labels of the model's rows. Default: a sample has its own.
    tasks : tasks or their text forms, optional
        Numbers that you want to report: `tasks.mean("age")`, or "mean(age)".
    on : names of covariates, or columns, optional
        What to judge the probabilities on; default: all of the sample, or all columns of X. With a
        model it may also be a frame or a mapping of columns that the model does not read.
    pos_label : object, optional
        With a model, the value of the label that counts as 1; default: the second of its classes.
    weights, cluster, strata : column of n values or name of a column of X, optional
        With a model, as for `Sample`; default: every row counts alike, and rows are independent.
    missing : {"error", "level", "drop"}
        With a model, what to do with missing covariates, as for `Sample`; "error" by default.
    cv : int or splitter of scikit-learn, optional
        With a model, judge predictions of models that are fitted to the other folds, as for
        `Sample.from_estimator`; clusters stay whole. Default: the model is fitted already.
    alpha : float
        Error that is allowed: of the test, and of the intervals of groups, slices and tasks.
    tolerance : float
        The size of local bias that would matter. Tasks carry their own, in their own unit:
        `tasks.mean("age").matters_at(1.0)`.
    draws : int
        Number of redraws of the labels; the smallest p-value is 1 / (draws + 1). Where that leaves
        the verdict to chance (a p-value near `alpha`, a bias near `tolerance`), ten times as many
        are made, up to 9,999.
    rng : int, Generator or None
        Seed; None takes a new one, which the result names.
    engine : "auto" or an engine
        How sums over pairs of rows are computed, as for `klce_test`.
    charts : bool
        Whether to compute the curves and maps of the page, too (`audit.charts`); they take
        about as long as the rest. A page without them has no curves and maps.
    validation : bool
        Whether to compute what validators print about the predictions alone, too
        (`audit.validation`). It is no part of the verdict.
    robustness : bool
        Whether to find out what would overturn the audit, too (`audit.robustness`): how strongly
        rows would have to be selected, or how many labels be in error. It is no part of the
        verdict. Of more than two classes it is not known, and the audit says so.
    grades : name of a covariate, or column of n values, optional
        Rating classes that `audit.validation.grades` tests one by one, 50 at most: told as numbers
        rise, as ordered categories are ordered, or by the alphabet. They need not be among `on`.
        Rows of a column without a value are a grade of their own, unless a model's `missing`
        refuses them. Default: ten groups of the prediction.
    population : Population or Scan, optional
        Rows that numbers are wanted for, where the sample is not all of them: whether it is like
        them is told in `audit.resemblance`, without a look at labels. Default: it is not asked.
    progress : bool, optional
        Whether to show on standard error which stage is at work and about how long the rest takes:
        one line in a terminal, plain lines elsewhere. Default: in a terminal, after a second.

    Returns
    -------
    Audit
        All that was found; `print(audit)`, `audit.to_html(path)`, `audit.to_dict()`.

    Examples
    --------
    >>> import itrust as it
    >>> a = it.audit(it.simulate.survey(3_000, rng=0).sample, ["mean(age)"], draws=199, rng=0)
    >>> print(a.verdict)
    miscalibrated
    >>> a.verdict.closes_gate
    True

    A model, with the rows of a test set:

    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(2_000, 2))
    >>> y = np.random.default_rng(1).random(2_000) < 1 / (1 + np.exp(1 - X[:, 0] ** 2))
    >>> model = LogisticRegression().fit(X[:1_000], y[:1_000])
    >>> it.audit(model, X[1_000:], y[1_000:], draws=199, rng=0, charts=False)
    <Audit: miscalibrated, n 1,000>
    """
    begun = time.perf_counter()
    draws, seed = checked_reach(draws, alpha), as_seed(rng)
    tolerance = checked_share(tolerance, "tolerance")
    with_model = {"pos_label": pos_label, "weights": weights, "cluster": cluster}
    with_model |= {"strata": strata, "cv": cv, "missing": None if missing == "error" else missing}
    source, names, wanted, graded = asked_of(sample, X, y, tasks, on, grades, with_model, seed)
    if source.several:
        engine_given = None if isinstance(engine, str) and engine == "auto" else engine
        refuse_binary_settings(grades=grades, population=population, engine=engine_given)
    chosen = as_engine(engine)
    outcomes = len(source.classes) if source.several else 1
    settings = AuditDraws(float(alpha), draws, seed, bool(validation), graded, outcomes)
    steps = audit_steps(source, names, draws, len(wanted), bool(charts), bool(robustness))
    limits: dict[str, Any] = {"alpha": alpha, "tolerance": tolerance}
    with (
        one_blas_thread(),
        progress_stages(steps, lambda step: step_words(step, names), progress) as show,
    ):

        def begin(step: str, parts: float = 1.0) -> Advance:
            return show(step, parts) if step in steps else _unseen

        rows, extract, left_out = _rows_of(source, chosen, begin)
        check_tasks(rows, wanted, is_all=extract is None or extract.is_all)
        if graded is not None:
            refuse_many_grades(np.unique(rows.column(graded).values).size)
        judged = rows if tuple(names) == rows.names else rows.only(*names)

        def measured(settings: AuditDraws) -> dict[str, Any]:
            if rows.several:
                return measured_classes(rows, judged, wanted, settings, begin)
            if extract is None:
                return measured_by_design(rows, judged, wanted, settings, chosen, begin)
            who = chosen.in_memory if extract.is_all else chosen
            own = extract.some.extract() if extract.is_all else extract
            return measured_together(own, names, wanted, settings, who, begin)

        found = measured(settings)
        while (more := settings.raised(found["n"])) and unsettled(found, settings, tolerance):
            settings = more
            found = measured(settings)
        told = tuple(covered(result, names) for result in found["tasks"])
        test, parts, n = found["test"], found["parts"], found["n"]
        refuted = test.refutes(alpha)
        if charts:
            begin("charts")
        if not rows.several:
            diagnosis = parts[0].diagnosis
            drawn = charts_of(
                diagnosis.bias.sample,
                test,
                alpha=alpha,
                draws=draws,
                seed=seed,
                computed=bool(charts),
                telling=telling(parts[0].test, diagnosis, alpha, refuted=refuted),
                histogram=found["histogram"],
            )
            parts = (replace(parts[0], charts=drawn),)
        alike = None
        if population is not None:
            from itrust.balance import resemblance  # loads what audits without it do not need

            alike = resemblance(judged, population, alpha=alpha, draws=draws, rng=seed)
        overturning = None
        if robustness:
            begin("overturn")
            overturning = overturning_of(
                rows,
                judged,
                told,
                refuted=refuted,
                is_all=left_out == 0 and rows.n == n,
                alpha=float(alpha),
                draws=draws,
                seed=seed,
                engine=chosen.in_memory,
            )
        judgement = judge(test, parts, found["missed"], told, **limits)
    return Audit(
        sample=rows,
        n=n,
        overall=found["overall"],
        test=test,
        parts=parts,
        pairs=found.get("pairs"),
        missed=found["missed"],
        tasks=told,
        judgement=judgement,
        autocorrelation={} if rows.several else _in_time(judged),
        validation=found["validation"],
        **limits,
        draws=settings.draws,
        seed=seed,
        elapsed=time.perf_counter() - begun,
        rows_left_out=left_out,
        resemblance=alike,
        robustness=overturning,
    )


def _unseen(amount: float) -> None:
    """A stage of little work, which is not shown."""


def _rows_of(source: Any, engine: Engine, begin: Begin) -> tuple[Any, Extract | None, int]:
    """The rows at hand, all rows, and how many are left out.

    All rows are None where rows come from a design, of which those that are used are at hand, or
    have several classes.
    """
    if source.several:
        return source, None, 0
    if isinstance(source, Scan) and not source.is_simple:
        begin("rows")
        source = source.load()
    if isinstance(source, Sample) and not source.design.is_simple:
        some = source.some_clusters(DESIGN_ROWS)
        return some, None, source.n - some.n
    advance = begin("rows", source.rows_expected if isinstance(source, Scan) else 1.0)
    extract = engine.extract(source, advance=advance)
    return extract.some, extract, 0


def _in_time(sample: Sample) -> dict[str, Autocorrelation]:
    """Whether residuals go together in time, for every covariate that is a date."""
    found = {}
    for column in sample.columns:
        if column.kind == "date":
            known = np.flatnonzero(~column.missing & (sample.p > 0) & (sample.p < 1))
            days = np.floor(column.values[known])
            if np.unique(days).size > MIN_TIMES:
                found[column.name] = residual_autocorrelation(sample.take(known), days)
    return found
