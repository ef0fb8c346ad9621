"""The commands and their options; what they do stands in modules of their own."""

from __future__ import annotations

import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from itrust.cli.console import Log
from itrust.cli.exit import Guarded
from itrust.cli.help import PlainCommand
from itrust.cli.outputs import refuse_standard_output
from itrust.cli.settings import find_settings

START = """
Start here:
  itrust demo
  itrust audit homes.csv --label owner --prob p --on income,race
"""

app = typer.Typer(
    name="itrust",
    cls=Guarded,
    help="Can a classifier's probabilities be trusted for inference?",
    epilog=START,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Run the command line; leaves with its exit code."""
    if not sys.warnoptions:  # those of ours are in the result; others say nothing to users
        warnings.simplefilter("ignore")
    app(prog_name="itrust")
    raise SystemExit  # not reached: the guard has left already


class MissingChoice(StrEnum):
    """What to do with missing covariates."""

    error = "error"
    level = "level"
    drop = "drop"


COLUMNS, TEST, FILES = "Columns", "The test", "Output files"
GATE = "The gate"

Label = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Labels: 0/1, or two values.", rich_help_panel=COLUMNS),
]
Probs = Annotated[
    list[str] | None,
    typer.Option(
        "--prob",
        metavar="COL",
        help="Predicted probabilities. Again for more models: the first is audited, all are "
        "compared.",
        rich_help_panel=COLUMNS,
    ),
]
On = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="COL,COL",
        help="Covariates to judge on; 'all' for every other column.",
        rich_help_panel=COLUMNS,
    ),
]
Weights = Annotated[
    str | None, typer.Option(metavar="COL", help="Survey weights.", rich_help_panel=COLUMNS)
]
Cluster = Annotated[
    str | None, typer.Option(metavar="COL", help="Repeated units.", rich_help_panel=COLUMNS)
]
Positive = Annotated[
    str | None,
    typer.Option(metavar="VALUE", help="The label that counts as 1.", rich_help_panel=COLUMNS),
]
Missing = Annotated[
    MissingChoice,
    typer.Option(
        metavar="HOW",
        help="Missing covariates: error, level (of their own) or drop.",
        rich_help_panel=COLUMNS,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")]

AUDIT_EXAMPLES = """
Examples:
  itrust audit homes.csv --label owner --prob p --on income,race
  itrust audit homes.csv --on all --task 'mean(age | race == "b")'
  itrust audit runs/ --label y --prob forest --prob logit --on age
  itrust audit homes.parquet --on age --report page.html --gate
  zcat homes.csv.gz | itrust audit - --on age --json - | jq .pvalue

FILE is CSV, TSV (both also .gz), Parquet, Feather, a folder or
pattern of these, or - for standard input. Options may stand in
itrust.toml or under [tool.itrust] in pyproject.toml.

Exit codes: 0 done, 1 --gate and untrustworthy, 2 wrong input,
70 a fault of ours, 130 stopped.
"""


@app.callback(invoke_without_command=True)
def start(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Tell whether a classifier's probabilities can be trusted for inference."""
    if version:
        from itrust import __version__
        from itrust.cli.console import answer

        answer(f"itrust {__version__}")
        raise typer.Exit(0)
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(0)
    if ctx.invoked_subcommand in ("audit", "recalibrate"):
        _use_settings(ctx, ctx.invoked_subcommand)


def _use_settings(ctx: typer.Context, name: str) -> None:
    """Let a file of settings stand in for options that are not given."""
    group: Any = ctx.command
    names = [parameter.name for parameter in group.commands[name].params]
    found = find_settings(Path.cwd())
    ctx.default_map = {name: found.defaults(names)}
    ctx.obj = found


def _say_settings(ctx: typer.Context, log: Log) -> None:
    if ctx.obj is not None and ctx.obj.path is not None:
        log.say(f"settings from {ctx.obj.path}")


@app.command("audit", cls=PlainCommand, epilog=AUDIT_EXAMPLES)
def audit_command(
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Labelled rows the model was not fitted on.")
    ],
    label: Label = None,
    prob: Probs = None,
    on: On = None,
    weights: Weights = None,
    cluster: Cluster = None,
    positive: Positive = None,
    missing: Missing = MissingChoice.error,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            metavar="EXPR",
            help="A number you report, such as 'mean(age)'; again for more. See 'itrust tasks'.",
            rich_help_panel=TEST,
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(metavar="P", help="Of test and intervals.", rich_help_panel=TEST)
    ] = 0.05,
    tolerance: Annotated[
        float,
        typer.Option(metavar="SIZE", help="Local bias that would matter.", rich_help_panel=TEST),
    ] = 0.05,
    draws: Annotated[
        int, typer.Option(metavar="N", help="Redraws of the labels.", rich_help_panel=TEST)
    ] = 999,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Same seed, same numbers.", rich_help_panel=TEST)
    ] = 0,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="HTML page.", rich_help_panel=FILES),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="All numbers; - for standard output.", rich_help_panel=FILES
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JUnit XML for build servers.", rich_help_panel=FILES),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown for a pull request.", rich_help_panel=FILES),
    ] = None,
    min_cell: Annotated[
        int,
        typer.Option(
            metavar="ROWS",
            help="Groups and slices with fewer rows stay out of the files.",
            rich_help_panel=FILES,
        ),
    ] = 10,
    repair: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Other labelled rows: learn repairs from them, judge them on FILE.",
            rich_help_panel=TEST,
        ),
    ] = None,
    gate: Annotated[
        bool,
        typer.Option("--gate", help="Exit 1 if untrustworthy.", rich_help_panel=GATE),
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Judge the probabilities in a file, given the covariates you care about."""
    from itrust.cli.audit import Options, run

    _say_settings(ctx, Log(quiet))
    refuse_standard_output({"--report": report, "--junit": junit, "--summary": summary})
    outputs = {"--report": report, "--json": json, "--junit": junit, "--summary": summary}
    return run(
        Options(
            file=file,
            label=label,
            probs=prob or (),
            on=on or (),
            weights=weights,
            cluster=cluster,
            positive=positive,
            missing=missing.value,
            tasks=task or (),
            alpha=alpha,
            tolerance=tolerance,
            draws=draws,
            seed=seed,
            min_cell=min_cell,
            repair=repair,
            outputs=outputs,
            gate=gate,
            quiet=quiet,
        )
    )


RECALIBRATE_EXAMPLES = """
Examples:
  itrust recalibrate fit.csv --label y --prob p --on age --save repair.json
  itrust recalibrate fit.csv --label y --prob p --on age \\
      --apply new.csv --out repaired.csv
  itrust recalibrate --load repair.json \\
      --apply new.parquet --out repaired.parquet

Methods that read the prediction and the covariates:
  local             smooth in all of them; as simple as the rows allow
  multicalibration  shifts groups until each is right on average
  proportional      the same, errors relative to the group's rate
  mcgrad            boosted trees (needs the package: pip install MCGrad)
Methods that read the prediction alone:
  platt             a line in the logit
  temperature       a factor of the logit
  isotonic          any rising curve
  histogram         means of equally filled bins
  bbq               an average over many such histograms
  beta              a curve with three parameters

Fit on rows that neither trained the model nor will audit it. The other
columns of --apply are written as they are.
"""
REPAIR = "The repair"
RepairedProb = Annotated[
    list[str] | None,
    typer.Option(
        "--prob",
        metavar="COL",
        help="Predicted probabilities to repair; with --load, as saved unless named.",
        rich_help_panel=COLUMNS,
    ),
]
RepairedOn = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="COL,COL",
        help="Covariates to repair by; 'all' for every other column. Not with --load.",
        rich_help_panel=COLUMNS,
    ),
]


@app.command("recalibrate", cls=PlainCommand, epilog=RECALIBRATE_EXAMPLES)
def recalibrate_command(
    ctx: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="FIT_FILE", help="Labelled rows to fit on.")
    ] = None,
    label: Label = None,
    prob: RepairedProb = None,
    on: RepairedOn = None,
    weights: Weights = None,
    cluster: Cluster = None,
    positive: Positive = None,
    missing: Missing = MissingChoice.error,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to repair; see below.",
            rich_help_panel=REPAIR,
        ),
    ] = "local",
    apply: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Rows to repair.", rich_help_panel=REPAIR),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Those rows with the new column: .csv, .tsv, .parquet or .feather.",
            rich_help_panel=REPAIR,
        ),
    ] = None,
    column: Annotated[
        str, typer.Option(metavar="NAME", help="Of the new column.", rich_help_panel=REPAIR)
    ] = "p_repaired",
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the repair as JSON.", rich_help_panel=REPAIR),
    ] = None,
    load: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Take a saved repair instead of fitting.", rich_help_panel=REPAIR
        ),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Fit a repair of the probabilities on one file and apply it to another."""
    from itrust.cli.recalibrate import Options, run

    _say_settings(ctx, Log(quiet))
    refuse_standard_output({"--out": out, "--save": save})
    typed = _typed(ctx)
    if file is not None and "load" not in typed:
        load = None  # the command line wins over a setting
    return run(
        Options(
            file=file,
            label=label,
            probs=prob or (),
            on=on or (),
            weights=weights,
            cluster=cluster,
            positive=positive,
            missing=missing.value,
            method=method,
            apply=apply,
            out=out,
            column=column,
            save=save,
            load=load,
            quiet=quiet,
            typed=typed,
        )
    )


def _typed(ctx: typer.Context) -> frozenset[str]:
    """Names of the parameters that stand on the command line, not in settings."""
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return frozenset(
        name for name, source in sources.items() if source and source.name == "COMMANDLINE"
    )


@app.command("demo", cls=PlainCommand)
def demo_command(
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="HTML page of the audit.")
    ] = None,
) -> int:
    """Audit a simulated survey whose truth is known; needs no data."""
    from itrust.cli import demo
    from itrust.cli.outputs import refuse_bad_places

    refuse_standard_output({"--report": report})
    refuse_bad_places({"--report": report}, [])
    return demo.main(report)


@app.command("tasks", cls=PlainCommand)
def tasks_command(
    expression: Annotated[
        str | None, typer.Argument(metavar="EXPR", help="A task to read, in quotes.")
    ] = None,
) -> int:
    """Explain how to write the numbers you report."""
    from itrust.cli.tasks import explain

    explain(expression)
    return 0


@app.command("doctor", cls=PlainCommand)
def doctor_command() -> int:
    """Show versions, threads, extras and where data are kept."""
    from itrust.cli.doctor import examine

    return examine()
