"""What a test is given: rows, null and kernel, checked before anything costly begins."""

from __future__ import annotations

from itrust._core import InputError, checked_count, counted
from itrust.calibration.assumptions import assumption_notes
from itrust.calibration.results import Refusal
from itrust.data import Sample, Scan, Source, checked_sample, clusters_in_files
from itrust.engines import Survey
from itrust.kernels import LocalKernel
from itrust.nulls import IntervalNull, Null, carriers_of, fitting_null

FEW_CLUSTERS = 20
BY_CLUSTER = (
    "the p-value is approximate, by clusters; KLCE^2 itself includes pairs within a cluster, which "
    "dependence alone can make positive"
)


def checked_source(source: object, call: str | None = None) -> Sample | Scan:
    """Pass a Sample or a Scan of independent rows on; refuse anything else, with the right call."""
    if isinstance(source, Scan) and not source.is_simple:
        raise clusters_in_files()
    return source if isinstance(source, Scan) else checked_sample(source, call)


def checked_draws(draws: object) -> int:
    """Pass a number of draws on; refuse anything else."""
    return checked_count(draws, "draws")


def checked_null(null: Null | None, source: Source) -> Null:
    """The null that was asked for, or the one that fits the rows."""
    if null is None:
        return fitting_null(source)
    if not isinstance(null, Null):
        raise InputError(
            "{argument} must be one of itrust.nulls, such as Bernoulli(), not {value}",
            argument="null",
            value=null,
        )
    if isinstance(null, IntervalNull):
        raise InputError(
            "{argument} is an interval null, which klce_test alone takes, not {value}",
            argument="null",
            value=null,
        )
    return null


def resolved_kernel(kernel: LocalKernel | None, survey: Survey) -> LocalKernel:
    """The kernel with its widths, from predictions and covariates alone; None: the default one."""
    if kernel is not None and not isinstance(kernel, LocalKernel):
        raise InputError(
            "{argument} must be a LocalKernel(prob=..., x=...), not {value}",
            argument="kernel",
            value=kernel,
        )
    return (kernel or LocalKernel()).resolve(survey.points)


def null_warnings(source: Source, null: Null, runs: Sample | None = None) -> tuple[str, ...]:
    """Warn where the data contradict the assumptions of the null."""
    warnings, clusters, sample = assumption_notes(source, runs), source.clusters, source.in_memory
    if null.keeps_clusters:
        if clusters is None or clusters >= FEW_CLUSTERS:
            return warnings
        few = counted(clusters, "cluster")
        return (*warnings, f"{few} are few for an approximation: what is said of them is rough")
    if clusters is None if sample is None else sample.design.rows_are_independent:
        return warnings
    name = type(null).__name__
    return (*warnings, f"{name}() takes rows as independent and ignores the clusters")


def cluster_notes(source: Source, null: Null) -> list[str]:
    """Say what clusters mean for the p-value and for KLCE^2."""
    if source.clusters is None or not null.keeps_clusters:
        return []
    return [BY_CLUSTER]


def refused_by(source: Source) -> Refusal | None:
    """Why no p-value can be given for rows in clusters; None where one can."""
    sample = source.in_memory
    if sample is None or sample.design.rows_are_independent:
        return None
    found = carriers_of(sample)
    if found.enough:
        return None
    by_replicates = sample.design.known_by_replicates
    return Refusal(found.clusters, found.effective, found.needed, by_replicates)
