"""`itrust recalibrate` for several classes: learn all of them, write one column for each."""

from __future__ import annotations

from pathlib import Path

from itrust import recalibrate
from itrust._core import InputError, Write, counted, did_you_mean
from itrust.cli.columns import na_values
from itrust.cli.console import Log
from itrust.cli.exit import load
from itrust.cli.inputs import InputFiles
from itrust.cli.options import Options
from itrust.cli.outputs import cells_notes
from itrust.cli.recalibrate_notes import missing_rule, outside_notes, unseen_notes
from itrust.cli.roles import class_models, read_class_samples, settle
from itrust.data import class_columns, names_several

CLASSES_WANTED = (
    "{argument}: what was learned is about several classes; name their columns, such as "
    "win=p1,tie=pt,loss=p2 or 'p_*'"
)


def fitted_classes(
    source: InputFiles, options: Options, log: Log
) -> tuple[recalibrate.Recalibrator, str] | None:
    """Learn from rows of several classes; None where one column of probabilities is named."""
    models = class_models(source, options)
    if not models:
        return None
    if len(models) > 1:
        raise InputError(
            "{argument}: one model is recalibrated at a time; name the classes of one",
            argument="prob",
        )
    load("itrust.recalibrate.methods")
    known = recalibrate.CLASS_METHODS
    if options.method not in known:
        raise InputError(
            "{argument}: there is no {value} for several classes; {guess}",
            argument="method",
            value=options.method,
            details={"guess": did_you_mean(options.method, list(known))},
        )
    method = known[options.method]
    roles = settle(source, log, options, on_needed=bool(method.reads_covariates))
    (rows,) = read_class_samples(source, roles, roles.on, options).values()
    learned = method().fit(rows)
    (learned.prob_,) = models
    told = f"fitted {options.method} on {counted(rows.n, 'row')} of {source.name}"
    return learned, f"{told}: {len(rows.classes)} classes"


def apply_classes(
    learned: recalibrate.Recalibrator,
    prob: str,
    source: InputFiles,
    options: Options,
    out: Path,
    others: dict[Path, Write],
    log: Log,
) -> list[str]:
    """Write all columns of the file and those of the classes; give what was done."""
    if not names_several(prob, dict.fromkeys(source.columns)):
        raise InputError(CLASSES_WANTED, argument="prob")
    with source.located():
        columns = class_columns(source.columns, prob)
    classes = tuple(learned.classes_ or ())
    by_text = {str(name): column for name, column in columns.items()}
    lacking = [name for name in classes if str(name) not in by_text]
    if lacking:
        raise InputError(
            "{argument}: there is no column for the class {value}, which was learned; name the "
            "columns of all classes, such as win=p1,tie=pt,loss=p2 or 'p_*'",
            argument="prob",
            value=str(lacking[0]),
        )
    ordered = {name: by_text[str(name)] for name in classes}
    on = list(learned.columns_)
    for name in on:
        source.require("on", name)
    made = recalibrate.ClassApplication(learned, ordered, missing_rule(options))
    with source.located():
        copy = recalibrate.write_recalibrated(
            made,
            source.file_set,
            out,
            [f"{options.column}_{name}" for name in classes],
            [*ordered.values(), *on],
            na_values=na_values(options),
            safe_cells=options.safe_cells,
            others=others,
        )
    log.say(*cells_notes(copy.cells, out.name))
    log.say(*unseen_notes(made, source.name))
    told = f"recalibrated {counted(made.rows, 'row')} of {source.name}"
    moved = f"{made.moved:.3f} of the probability moved between classes"
    return [*outside_notes(made), f"{told}: {moved}"]
