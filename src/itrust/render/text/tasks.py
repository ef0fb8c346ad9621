"""Tasks as plain text: what a model does to a number, and estimates on a population."""

from __future__ import annotations

from itrust.render.showing import WIDTH, as_text
from itrust.tasks import Estimate, TaskEstimate, TaskFinding, TaskResult

TASK_SIGN = "bias = with labels - with probabilities; positive: the model understates it"
WAYS = {
    "plugin": "plug-in",
    "recalibrated": "recalibrated",
    "prediction_powered": "prediction-powered",
    "labelled": "labels alone",
}
WITH_SIZE = {
    TaskFinding.SIZE_NOT_ESTABLISHED: "biased, by {:g} or more not shown",
    TaskFinding.WITHIN_TOLERANCE: "within {:g}",
    TaskFinding.NOT_EXCLUDED: "no bias shown, {:g} not excluded",
}


@as_text.register
def _(result: TaskResult, width: int = WIDTH) -> str:  # noqa: ARG001
    lines = [
        result.name,
        f"  with probabilities  {result.plugin:.6g}",
        f"  with labels         {result.from_labels:.6g}",
        f"  bias                {result.bias:+.4g}   ({result.lower:+.4g} to {result.upper:+.4g})",
        f"  p-value             {result.pvalue:.4g}   (H0: no bias for this task)",
        f"  finding             {finding_text(result)}",
        f"  depends on          {', '.join(result.covariates) or 'no covariate'}",
        f"  {TASK_SIGN}",
        *(f"  note: {note}" for note in result.notes),
    ]
    return "\n".join(lines)


def finding_text(result: TaskResult) -> str:
    """What was found about a task, with the size that would matter."""
    told = WITH_SIZE.get(result.finding)
    if told is None or result.tolerance is None:
        return result.finding.value
    return told.format(result.tolerance)


@as_text.register
def _(result: Estimate, width: int = WIDTH) -> str:  # noqa: ARG001
    return f"{result.value:.5g}  {ends_text(result)}, if {result.assumes}"


@as_text.register
def _(result: TaskEstimate, width: int = WIDTH) -> str:  # noqa: ARG001
    names = max(map(len, WAYS.values()))
    lines = [
        f"  {WAYS[name]:<{names}} {way.value:>10.5g}  {ends_text(way):<22}  if {way.assumes}"
        for name, way in result.ways.items()
    ]
    head = f"{result.task} on {result.size:,} rows without labels, {result.n:,} with"
    return "\n".join([head, *lines, *(f"  note: {note}" for note in result.notes)])


def ends_text(way: Estimate) -> str:
    """The interval of an estimate."""
    return f"({way.lower:.5g} to {way.upper:.5g})"
