"""The commands; their options stand in `options`, what they do in modules of their own.

Nothing here loads NumPy: help and complaints about options come at once.
"""

from __future__ import annotations

import gc
import signal
import sys
import warnings
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from itrust._core import counted, printable, progress_shown
from itrust.cli.command import Guarded, Plain, number_reader
from itrust.cli.console import answer, complain, nothing_but_results
from itrust.cli.options import (
    AUDIT,
    DEMO,
    ESTIMATE,
    RECALIBRATE,
    STANDARD,
    WATCH_START,
    WATCH_STATUS,
    WATCH_UPDATE,
    Kind,
    Option,
    Options,
    options_of,
)
from itrust.cli.outputs import refuse_odd_values
from itrust.cli.settings import Settings, current_settings

START = """
Start here:
  itrust demo
  itrust audit homes.csv --label owner --prob p --on age,region
"""
AUDIT_EXAMPLES = """
Examples:
  itrust audit homes.csv --label owner --prob p --on age,region
  itrust audit homes.csv --on all --task 'mean(age | region == "south")'
  itrust audit runs/ --label y --prob forest --prob logit --on age
  itrust audit homes.parquet --on age --report page.html --gate
  zcat homes.csv.gz | itrust audit - --on age --json - | jq .pvalue

FILE is CSV, TSV, JSON lines (these also .gz), Parquet, Feather,
Stata, SPSS, Excel, SQLite, a folder or pattern of one of
these, or - for standard input. A sheet or table is named as in
homes.xlsx::2024. Options may stand in itrust.toml or under
[tool.itrust] in pyproject.toml.
"""
RECALIBRATE_EXAMPLES = """
Examples:
  itrust recalibrate fit.csv --label y --prob p --on age --save learned.json
  itrust recalibrate --load learned.json --apply new.csv --out better.csv

Methods that read the prediction and the covariates:
  local             smooth in all of them; as simple as the rows allow
  multicalibration  shifts groups until each is calibrated on average
  proportional      the same, errors relative to the group's rate
  mcgrad            boosted trees (needs the package: pip install MCGrad)
Methods that read the prediction alone:
  platt             a line in the logit
  temperature       a factor of the logit
  isotonic          any rising curve
  histogram         means of equally filled bins
  bbq               an average over many such histograms
  beta              a curve with three parameters
For several classes these, each class against the rest where no form for
all at once is known, and vector, matrix and dirichlet.

Fit on rows that neither trained the model nor will audit it.
"""
ESTIMATE_EXAMPLES = """
Examples:
  itrust estimate clinic.csv country.parquet --label y --prob p \\
      --on age,region --task 'prevalence()' --report page.html

POPULATION needs no labels and may be larger than memory; one of the
files may be - for standard input. Say with --on what decided who was
labelled: the answer rests on it.
"""
WATCH_EXAMPLES = """
Start once, update with every batch of labelled rows, look at any time:
  itrust watch start reference.parquet --label y --prob p \\
      --on age,region --state watch.json
  itrust watch update week12.parquet --state watch.json \\
      --report page.html --gate
  itrust watch status --state watch.json
"""
START_EXAMPLES = """
Examples:
  itrust watch start reference.parquet --label y --prob p \\
      --on age,region --task 'mean(age)' --state watch.json
  itrust watch start again.csv --new-model --name v2 --state watch.json

The reference is labelled rows, none of the training; no batch repeats
them. Columns are remembered, so that updates need not name them.
"""
UPDATE_EXAMPLES = """
Examples:
  itrust watch update week12.parquet --state watch.json --gate
  itrust watch update may.csv --late --closed-before 2024-07-01 \\
      --state watch.json

A batch with exactly the rows of one that was counted is refused. Rows
that two different batches share are not noticed: give each row once. A
row belongs into the batch in which its outcome window closes, whatever
the outcome is; rows without a label are refused.
"""
STATUS_EXAMPLES = """
Examples:
  itrust watch status --state watch.json --json - | jq .alarm
"""
EXIT_CODES = """
Exit codes: 0 done, {}2 wrong input, 69 not enough memory, 70 internal
error, 74 standard output cannot be written to, 130 stopped.
"""
LABELLED = "Labelled rows, none of the training."
WRITTEN = "What 'itrust audit --json' wrote; - for standard input."
# By command: what it does, examples, and its files with their names and words.
COMMANDS: dict[str, tuple[str, str, dict[str, tuple[str, str]]]] = {
    AUDIT: (
        "Judge the probabilities in a file, given the covariates you care about.",
        AUDIT_EXAMPLES,
        {"file": ("FILE", "Labelled rows the model was not fitted on.")},
    ),
    RECALIBRATE: (
        "Learn from one file how to recalibrate probabilities, and apply it to another.",
        RECALIBRATE_EXAMPLES,
        {"file": ("FIT_FILE", "Labelled rows to fit on.")},
    ),
    ESTIMATE: (
        "Estimate numbers for a population without labels, from labelled rows of any origin.",
        ESTIMATE_EXAMPLES,
        {
            "file": ("LABELLED", "Rows with labels, none of the training."),
            "population": ("POPULATION", "Rows the numbers are for."),
        },
    ),
    WATCH_START: (
        "Settle what is watched, on labelled rows from before.",
        START_EXAMPLES,
        {"file": ("REFERENCE", LABELLED)},
    ),
    WATCH_UPDATE: (
        "Take in a batch of labelled rows, and tell how the model stands.",
        UPDATE_EXAMPLES,
        {"file": ("BATCH", "Labelled rows that were not counted yet.")},
    ),
    WATCH_STATUS: ("Tell how the model stands; nothing is changed.", STATUS_EXAMPLES, {}),
    DEMO: ("Audit a simulated survey whose truth is known; needs no data.", "", {}),
}


def _parameter(option: Option, command: str) -> click.Option:
    """A row of the table as a flag."""
    default = option.default_in(command)
    is_number, is_flag = option.kind in (Kind.NUMBER, Kind.COUNT), option.kind is Kind.SWITCH
    choices = click.Choice(option.choices) if option.choices else click.STRING
    return click.Option(
        [option.flag, *([option.short] if option.short else [])],
        type=None if is_flag else click.UNPROCESSED if is_number else choices,
        callback=number_reader(option) if is_number else None,
        multiple=option.kind is Kind.SEVERAL,
        is_flag=is_flag,
        default=default,
        show_default=default not in (None, False, ()),
        metavar=option.metavar or None,
        help=option.help_in(command),
    )


def _command(name: str) -> click.Command:
    """A command that takes its options from the table, and perhaps files."""
    help, examples, files = COMMANDS[name]

    @click.pass_context
    def run(ctx: click.Context, /, **values: Any) -> int:
        known = {key: values.pop(key, None) for key in ("file", "population")}
        sources = {key: ctx.get_parameter_source(key) for key in ctx.params}
        typed = frozenset(k for k, own in sources.items() if own is ParameterSource.COMMANDLINE)
        settings = ctx.obj if isinstance(ctx.obj, Settings) else Settings({})
        for line in settings.announcement(name, typed):
            complain(line)  # also to those who want quiet: the file itself may say so
        options = Options(name, values=values, typed=typed, settings=settings.path, **known)
        refuse_odd_values(options)
        return _run(options)

    parameters: list[click.Parameter] = [_parameter(option, name) for option in options_of(name)]
    if name != DEMO:
        arguments = [
            click.Argument([key], metavar=metavar, required=name != RECALIBRATE)
            for key, (metavar, _) in files.items()
        ]
        gate = "1 gate closed, " if any(option.name == "gate" for option in parameters) else ""
        examples += EXIT_CODES.format(gate)
        parameters = [*arguments, *parameters, _settings_option(name)]
    return Plain(
        name.split()[-1],
        params=parameters,
        callback=run,
        help=help,
        epilog=examples,
        arguments=dict(files.values()),
    )


def _settings_option(command: str) -> click.Option:
    """Which file of settings is read; before the other options, whose defaults it holds."""

    def read(ctx: click.Context, _: click.Parameter, named: str | None) -> None:
        if not ctx.resilient_parsing:
            settings = current_settings(named)
            ctx.obj, ctx.default_map = settings, settings.defaults(command)

    return click.Option(
        ["--settings"],
        metavar="FILE",
        help="Options to read from a file, or 'none'; by default those of the nearest itrust.toml.",
        callback=read,
        is_eager=True,
        expose_value=False,
    )


def _run(options: Options) -> int:
    """Do what was asked for; the heavy part is loaded here."""
    if app.while_loading:  # in a process of its own; elsewhere Arrow may be handed frames of pandas
        _arrow_without_pandas()
    work = import_module(f"itrust.cli.{options.command.split()[0]}")
    if app.while_loading:
        gc.enable()
        if signal.getsignal(signal.SIGINT) is app.while_loading:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    with progress_shown(not options.quiet), nothing_but_results():
        code: int = work.run(options)
    return code


def _arrow_without_pandas() -> None:
    """Let Arrow look for pandas now, in vain: files need none, and it takes long to load.

    Arrow looks once, when it first gives an array to NumPy.
    """
    finders: list[Any] = sys.meta_path
    finders.insert(0, SimpleNamespace(find_spec=_no_pandas))
    try:
        from pyarrow import array

        array([0]).to_numpy(zero_copy_only=False)
    finally:
        del finders[0]


def _no_pandas(name: str, *_: object) -> None:
    if name == "pandas":
        raise ModuleNotFoundError(name, name=name)


@click.group(
    name="itrust",
    cls=Guarded,
    help="Can a classifier's probabilities be trusted for inference?",
    epilog=START,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.pass_context
def app(ctx: click.Context, version: bool) -> None:
    """Tell what was asked about the command itself."""
    if version:
        from itrust import __version__

        answer(f"itrust {__version__}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        answer(ctx.get_help())


def main(while_loading: object = None) -> NoReturn:
    """Run the command line; leaves with its exit code."""
    if not sys.warnoptions:  # those of ours are in the result; others say nothing to users
        warnings.simplefilter("ignore")
    app.while_loading = while_loading
    gc.disable()  # loading leaves little, and looking for it takes a sixth of the time
    app(prog_name="itrust")
    raise SystemExit  # not reached: the guard has left already


@click.group(
    "watch",
    cls=Guarded,
    help="Watch a model in use: the same question with every batch, valid at any time.",
    epilog=WATCH_EXAMPLES,
    invoke_without_command=True,
)
@click.pass_context
def watch_group(ctx: click.Context) -> None:
    """Tell what can be done, where nothing was asked for."""
    if ctx.invoked_subcommand is None:
        answer(ctx.get_help())


for _name in COMMANDS:
    if _name == WATCH_START:
        app.add_command(watch_group)
    (watch_group if _name.startswith("watch ") else app).add_command(_command(_name))


@app.command("tasks", cls=Plain, arguments={"EXPR": "A task to read, in quotes."})
@click.argument("expression", metavar="EXPR", required=False)
def tasks_command(expression: str | None) -> int:
    """Explain how to write the numbers you report."""
    from itrust.cli.about import explain

    explain(expression)
    return 0


@app.command("check-json", cls=Plain, arguments={"FILE": WRITTEN})
@click.argument("file", metavar="FILE")
def check_json_command(file: str) -> int:
    """Check that a file is the JSON of an audit, as this version writes it."""
    from itrust.auditing import read_json
    from itrust.cli.inputs import SPOOLED, standard_input

    streams = file == STANDARD
    facts = read_json(standard_input() if streams else file)
    schema = f"{facts['schema']} of itrust {printable(facts['version'])}"
    rows = counted(int(facts["n"]), "row")
    answer(f"{SPOOLED if streams else printable(file)}: {schema}, {rows}, {facts['verdict']}")
    return 0


@app.command("doctor", cls=Plain)
def doctor_command() -> int:
    """Show versions, threads, extras and where data are kept."""
    from itrust.cli.about import examine

    return examine()
