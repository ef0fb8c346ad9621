"""Every option of the commands, once: flags, settings, values and the echoed command.

A new option is one row of `TABLE` and its use as `options.name`. From the row come the flag and its
help, the setting in `itrust.toml`, the value in `Options`, and its place in the command that a page
says it was made with.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

AUDIT, RECALIBRATE, DEMO, ESTIMATE = "audit", "recalibrate", "demo", "estimate"
WATCH_START, WATCH_UPDATE, WATCH_STATUS = "watch start", "watch update", "watch status"
WATCHES, TOLD = (WATCH_START, WATCH_UPDATE, WATCH_STATUS), (WATCH_UPDATE, WATCH_STATUS)
DESIGNS = (AUDIT, RECALIBRATE, ESTIMATE)  # commands that take strata and replicate weights
ON_FILES = (*DESIGNS, WATCH_START)  # commands that are told which columns of files are what
COLUMNS, TEST, METHOD, NUMBERS = "Columns", "The test", "The method", "The numbers"
FILES, GATE, OTHERS, WATCHED = "Output files", "The gate", "Options", "The watch"
PANELS = {(TEST, ESTIMATE): NUMBERS, (TEST, WATCH_START): WATCHED}  # what is no test
STANDARD = "-"  # standard input or output


class Kind(Enum):
    """What an option holds; the value is what a sentence says it must be."""

    TEXT = "text"
    SEVERAL = "text or a list of texts"
    NUMBER = "a number"
    COUNT = "a whole number"
    SWITCH = "true or false"
    READ = "the name of a file to read"
    WRITTEN = "the name of a file to write"


@dataclass(frozen=True)
class Option:
    """One row of the table."""

    name: str
    help: str | dict[str, str]  # in commands that have no words of their own: those of audits
    kind: Kind = Kind.TEXT
    metavar: str = ""
    panel: str = OTHERS
    default: object = None
    commands: tuple[str, ...] = (AUDIT, RECALIBRATE)
    choices: tuple[str, ...] = ()
    short: str = ""
    echo: bool = False  # whether it stands in the command that makes an audit again
    streams: bool = False
    bare: str = ""
    at_least: int = 1
    at_most: int = 0

    @property
    def key(self) -> str:
        """Its name in Python."""
        return self.name.replace("-", "_")

    @property
    def flag(self) -> str:
        """As it is typed."""
        return f"--{self.name}"

    @property
    def is_file(self) -> bool:
        """Whether its value names a file."""
        return self.kind in (Kind.READ, Kind.WRITTEN)

    def help_in(self, command: str) -> str:
        """What it does in a command."""
        if isinstance(self.help, str):
            return self.help
        return self.help[command if command in self.help else AUDIT]

    def default_in(self, command: str) -> Any:
        """The value in a command where none is given."""
        if self.kind is Kind.SEVERAL:
            return ()
        return self.default.get(command) if isinstance(self.default, dict) else self.default

    def panel_in(self, command: str) -> str:
        """The heading that it stands under in the help of a command."""
        return PANELS.get((self.panel, command), self.panel)

    def echoed(self, value: Any) -> list[str]:
        """The option with its value as it would be typed; words that are the default are not."""
        usual = self.kind in (Kind.TEXT, Kind.SWITCH) and value == self.default
        if value is None or usual or not self.echo:
            return []
        if self.kind is Kind.SWITCH:
            return [self.flag]
        parts = value if self.kind is Kind.SEVERAL else [value]
        texts = [repr(part) if isinstance(part, float) else str(part) for part in parts]
        return [word for text in texts for word in (self.flag, text)]


_column = partial(Option, metavar="COL", panel=COLUMNS, commands=ON_FILES, echo=True)
_columns = partial(_column, kind=Kind.SEVERAL, metavar="COL,COL")
_test = partial(Option, panel=TEST, commands=(AUDIT,), echo=True)
_watch = partial(Option, panel=WATCHED, commands=(WATCH_START,), echo=True)
_output = partial(Option, kind=Kind.WRITTEN, metavar="FILE", panel=FILES)
_page = partial(Option, panel=FILES, commands=(AUDIT, ESTIMATE, *TOLD), echo=True)
_without = partial(
    Option, kind=Kind.SWITCH, panel=FILES, default=False, commands=(AUDIT,), echo=True
)
_method = partial(Option, panel=METHOD, commands=(RECALIBRATE,))

LABEL = "Labels: 0/1, two values, or several classes."
LABELS_OF = "Labels of LABELLED: 0/1, two values, or several classes."
PROB = {
    AUDIT: "Predicted probabilities. Of several classes win=p1,tie=pt,loss=p2 or 'p_*', whose star "
    "names the class. Again for more models: the first is audited, all are compared.",
    RECALIBRATE: "Predicted probabilities to recalibrate, of several classes as in audit; with "
    "--load, as saved unless named.",
    ESTIMATE: "Predicted probabilities, in both files; of several classes as in audit.",
    WATCH_START: "Predicted probabilities; of several classes as in audit.",
}
ON = {
    AUDIT: "Covariates to judge on; 'all' for every other column, 'none' for the prediction alone.",
    RECALIBRATE: "Covariates to recalibrate by; 'all' for every other column, 'none' for none. "
    "Not with --load.",
    ESTIMATE: "Covariates that who is labelled may depend on, in both files; 'all' for every other "
    "column that both have, 'none' for the prediction alone.",
}
CLUSTER = "Repeated units; several columns are crossed, and week(DATE) takes weeks."
DATE_COLUMN = "When the outcome window of a row closes; batches have to follow each other in it."
GRADES = "Rating grades, for the table by grade that validators ask for; need not be in --on."
VALUE_LABELS = "What codes mean: 'race: 1=White, 2=Black'; again for more columns."
MISSING = "Rows that lack a value: error, level (of missing covariates) or drop."
DATES = "Whether 03/04/2024 has the day (dmy) or the month (mdy) first."
TASK = "A number you report, such as 'mean(age) ~ 0.5'; again for more. See 'itrust tasks'."
WANTED = "The number you want, such as 'mean(age)'; again for more. See 'itrust tasks'."
ALPHA = {
    AUDIT: "Size of the test; intervals cover 1 - P.",
    ESTIMATE: "Intervals cover 1 - P.",
    WATCH_START: "Error that is allowed, over all times.",
}
TOLERANCE = {
    AUDIT: "Local bias that would matter.",
    WATCH_START: "Local bias that is let pass; none without it.",
}
PROMISE = (
    "ever: the probability of a false alarm, ever, is at most P; run-length: 1/P batches or more "
    "on average until one."
)
NAMES = {
    WATCH_START: "Name of the model.",
    WATCH_UPDATE: "Name of the batch, else of its file; rows that wait are known by it.",
}
NEW_MODEL = "Go on with another model in the watch that --state keeps: a new segment."
CLOSED_BEFORE = "Only rows whose window closes before it count; the others wait."
LATE = (
    "Take in rows of earlier times, whose outcomes came late; where rows wait, those of the batch "
    "of the same name."
)
SUPPORT = "Where part of the population is unlike all labelled rows: refuse, or exclude that part."
ROWS = "The simulated rows, such as homes.csv, to try the other commands on."
MIN_CELL = "Show nothing of fewer rows, and all else with a noise that belongs to its rows."
NO_VALIDATION = "Leave out what validators print: slope, ICI, Hosmer-Lemeshow and others."
NO_ROBUSTNESS = "Leave out what would overturn the audit: selection, label error, flipped labels."
GATES = {
    AUDIT: "Exit 1 if the model is miscalibrated, a number is biased, or any of them (default).",
    **dict.fromkeys(
        TOLD,
        "Exit 1 if there is an alarm, a number is biased, or any (default); each number has an "
        "error alpha of its own.",
    ),
}
ROBUST_TO = (
    "With --gate: exit 1 only if the evidence survives this, such as 'odds:1.2' or "
    "'label-error:0.02,tolerance:0.03'."
)
OUT = "Those rows with the new column: .csv, .tsv, .jsonl (also .gz), .parquet, .feather."
STREAM = "Read FILE some rows at a time; done anyway if it takes a fifth of free memory."

TABLE = (
    _column("label", {**dict.fromkeys(ON_FILES, LABEL), ESTIMATE: LABELS_OF}),
    _column("prob", PROB, kind=Kind.SEVERAL),
    _columns("on", ON),
    _column("weights", {AUDIT: "Survey weights.", ESTIMATE: "Survey weights of LABELLED."}),
    _column("population-weights", "Survey weights of POPULATION.", commands=(ESTIMATE,)),
    _column("selection", "Known probabilities of labelling, in LABELLED.", commands=(ESTIMATE,)),
    _columns("cluster", CLUSTER),
    _columns("strata", "Strata that clusters were drawn in.", commands=DESIGNS),
    _columns(
        "replicate-weights",
        "Replicate weights, such as 'REPWT*'.",
        metavar="COLS",
        commands=DESIGNS,
    ),
    _column(
        "replicate-method",
        "What made them: jk1, jk2, brr, fay:0.5, sdr or bootstrap.",
        metavar="HOW",
        commands=DESIGNS,
    ),
    _column("date-column", DATE_COLUMN, commands=(WATCH_START,)),
    _column("grades", GRADES, commands=(AUDIT,)),
    _column("positive", "The label that counts as 1; all others are 0.", metavar="VALUE"),
    _columns("category", "Columns whose numbers are codes, such as race 1 to 5."),
    _columns("number", "Columns that are numbers, whatever they look like."),
    _columns("value-labels", VALUE_LABELS, metavar="TEXT"),
    _column("where", "Rows that count, such as 'age >= 18'.", metavar="COND"),
    _columns("na-values", "Codes of missing values, such as '-99,NA'.", metavar="CODES"),
    _column("sep", "What separates columns of text files, such as ';' or tab.", metavar="CHAR"),
    _column("decimal", "Decimal sign of text files.", metavar="CHAR", choices=(".", ",")),
    _column("dates", DATES, metavar="ORDER", choices=("dmy", "mdy")),
    _column("missing", MISSING, metavar="HOW", default="error", choices=("error", "level", "drop")),
    _watch(
        "state",
        "The file that keeps the watch, such as watch.json.",
        kind=Kind.WRITTEN,
        metavar="FILE",
        commands=WATCHES,
    ),
    _test(
        "task",
        {AUDIT: TASK, ESTIMATE: WANTED, WATCH_START: TASK},
        kind=Kind.SEVERAL,
        metavar="EXPR",
        commands=(AUDIT, ESTIMATE, WATCH_START),
    ),
    _test(
        "recalibrate",
        "Other labelled rows: recalibrate with them, judge the result on FILE.",
        kind=Kind.READ,
        metavar="FILE",
    ),
    _test("alpha", ALPHA, kind=Kind.NUMBER, metavar="P", default=0.05, commands=tuple(ALPHA)),
    _test(
        "tolerance",
        TOLERANCE,
        kind=Kind.NUMBER,
        metavar="SIZE",
        default={AUDIT: 0.05},
        commands=tuple(TOLERANCE),
    ),
    _watch("promise", PROMISE, metavar="HOW", default="ever", choices=("ever", "run-length")),
    _watch("name", NAMES, metavar="NAME", commands=tuple(NAMES)),
    _watch("new-model", NEW_MODEL, kind=Kind.SWITCH, default=False),
    _watch("closed-before", CLOSED_BEFORE, metavar="DATE", commands=(WATCH_UPDATE,)),
    _watch("late", LATE, kind=Kind.SWITCH, default=False, commands=(WATCH_UPDATE,)),
    # More draws would take days and tell nothing more.
    _test(
        "draws",
        "Redraws of the labels; where these leave the verdict to chance, up to 9,999 are made.",
        kind=Kind.COUNT,
        metavar="N",
        default=999,
        at_most=10_000_000,
    ),
    _test(
        "seed",
        "Same seed, same numbers.",
        kind=Kind.COUNT,
        metavar="N",
        default=0,
        commands=(AUDIT, ESTIMATE),
        at_least=0,
    ),
    _test(
        "support",
        SUPPORT,
        metavar="HOW",
        default="refuse",
        commands=(ESTIMATE,),
        choices=("refuse", "exclude"),
    ),
    _output(
        "report",
        {AUDIT: "HTML page.", DEMO: "HTML page of the audit."},
        commands=(AUDIT, DEMO, ESTIMATE, *TOLD),
    ),
    _output("rows", ROWS, commands=(DEMO,)),
    _output(
        "json",
        "All numbers; - for standard output.",
        commands=(AUDIT, ESTIMATE, *TOLD),
        streams=True,
    ),
    _output("junit", "JUnit XML for build servers.", commands=(AUDIT, *TOLD)),
    _output("summary", "Markdown for a pull request.", commands=(AUDIT, *TOLD)),
    _page("title", "Title of the page.", metavar="TEXT"),
    _page("model", "What the model is called, and its version, for the page.", metavar="NAME"),
    _page("date", "Date for the page: 'today', or any text.", metavar="DATE"),
    _page("min-cell", MIN_CELL, kind=Kind.COUNT, metavar="ROWS"),
    _without("no-validation", NO_VALIDATION),
    _without("no-robustness", NO_ROBUSTNESS),
    Option(
        "gate",
        GATES,
        metavar="[model|tasks|any]",
        panel=GATE,
        commands=(AUDIT, *TOLD),
        choices=("model", "tasks", "any"),
        bare="any",
    ),
    Option("robust-to", ROBUST_TO, Kind.SEVERAL, "MARGIN", GATE, commands=(AUDIT,)),
    _method("method", "How to recalibrate; see below.", metavar="NAME", default="local"),
    _method("apply", "Rows to recalibrate.", kind=Kind.READ, metavar="FILE"),
    _method("out", OUT, kind=Kind.WRITTEN, metavar="FILE"),
    _method("column", "Name of the new column.", metavar="NAME", default="p_recalibrated"),
    _method("save", "Keep what was learned as JSON.", kind=Kind.WRITTEN, metavar="FILE"),
    _method("load", "Take what was saved instead of fitting.", kind=Kind.READ, metavar="FILE"),
    Option("stream", STREAM, Kind.SWITCH, default=False),
    Option(
        "quiet",
        "Nothing on stderr but errors and the file of settings.",
        Kind.SWITCH,
        default=False,
        commands=(*ON_FILES, *TOLD),
        short="-q",
    ),
)
BY_NAME = {option.name: option for option in TABLE if option.commands != (DEMO,)}  # for settings
BY_KEY = {option.key: option for option in TABLE}


def options_of(command: str) -> list[Option]:
    """The rows that a command takes, in the order of the table."""
    return [option for option in TABLE if command in option.commands]


@dataclass(frozen=True)
class Options:
    """What the command line and the settings ask for, by the names of the table."""

    command: str
    file: str | None
    values: Mapping[str, Any]
    typed: frozenset[str] = frozenset()
    settings: Path | None = None
    population: str | None = None

    def __getattr__(self, name: str) -> Any:
        if name in BY_KEY:
            return self.values.get(name, BY_KEY[name].default_in(self.command))
        raise AttributeError(name)

    @property
    def outputs(self) -> dict[str, Path | None]:
        """Files to be written, by flag; None for those that were not asked for."""
        return {
            option.flag: None
            if self.values.get(option.key) in (None, STANDARD)
            else Path(self.values[option.key])
            for option in options_of(self.command)
            if option.kind is Kind.WRITTEN
        }

    def folder_of(self, name: str) -> Path | None:
        """The folder that an option's files must lie in: that of settings which name them."""
        if self.settings is None or name in self.typed:
            return None
        return self.settings.parent

    def echo(self, settled: Mapping[str, Any]) -> str:
        """The command that does the same again; what was guessed or set is spelt out."""
        values = {**self.values, **settled}
        words = [
            word
            for option in options_of(self.command)
            for word in option.echoed(values.get(option.key))
        ]
        files = [str(file) for file in (self.file, self.population) if file is not None]
        return shlex.join(["itrust", *self.command.split(), *files, *words])
