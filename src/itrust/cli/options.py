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
MAX_DRAWS = 10_000_000  # more would take days and tell nothing more


class Kind(Enum):
    """What an option holds; the value is what a sentence says it must be."""

    TEXT = "text"
    SEVERAL = "text or a list of texts"
    NUMBER = "a number"
    COUNT = "a whole number"
    SWITCH = "true or false"
    READ = "the name of a file to read"
    WRITTEN = "the name of a file to write"


class Echo(Enum):
    """Whether an option stands in the command that makes an audit again."""

    NEVER = 0
    CHANGED = 1  # unless it has its default
    ALWAYS = 2  # unless there is no value


@dataclass(frozen=True)
class Option:
    """One row of the table."""

    name: str
    kind: Kind
    help: str | dict[str, str]
    metavar: str = ""
    panel: str = OTHERS
    default: object = None
    commands: tuple[str, ...] = (AUDIT, RECALIBRATE)
    choices: tuple[str, ...] = ()
    short: str = ""
    echo: Echo = Echo.NEVER
    streams: bool = False
    bare: str = ""
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
        """What it does in a command; the words of audits where it has none of its own."""
        if isinstance(self.help, str):
            return self.help
        return self.help[command if command in self.help else AUDIT]

    def default_in(self, command: str) -> Any:
        """The value in a command where none is given."""
        return self.default.get(command) if isinstance(self.default, dict) else self.default

    def panel_in(self, command: str) -> str:
        """The heading that it stands under in the help of a command."""
        return PANELS.get((self.panel, command), self.panel)

    def echoed(self, value: Any) -> list[str]:
        """The option with its value as it would be typed; nothing where there is none to type."""
        if value is None or self.echo is Echo.NEVER:
            return []
        if self.echo is Echo.CHANGED and value == self.default:
            return []
        if self.kind is Kind.SWITCH:
            return [self.flag] if value else []
        parts = value if self.kind is Kind.SEVERAL else [value]
        return [word for part in parts for word in (self.flag, _typed(part))]


def _typed(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _column(name: str, help: str | dict[str, str], **more: Any) -> Option:
    """An option about the columns of files."""
    settings = {"kind": Kind.TEXT, "metavar": "COL", "panel": COLUMNS, "echo": Echo.ALWAYS}
    settings["commands"] = ON_FILES
    return Option(name, help=help, **{**settings, **more})


def _test(
    name: str,
    kind: Kind,
    metavar: str,
    help: str | dict[str, str],
    default: object = None,
    at_most: int = 0,
) -> Option:
    """An option about the test; for estimates as well, where it has words for them."""
    settings: dict[str, Any] = {"echo": Echo.ALWAYS, "at_most": at_most}
    commands = (AUDIT,) if isinstance(help, str) else tuple(help)
    return Option(name, kind, help, metavar, TEST, default, commands, **settings)


def _estimate(name: str, help: str, **more: Any) -> Option:
    """An option for estimates alone."""
    settings = {"kind": Kind.TEXT, "panel": COLUMNS, "echo": Echo.ALWAYS, "metavar": "COL"}
    return Option(name, help=help, **{**settings, **more}, commands=(ESTIMATE,))


def _watch(name: str, help: str | dict[str, str], **more: Any) -> Option:
    """An option for watches alone."""
    settings = {"kind": Kind.TEXT, "panel": WATCHED, "echo": Echo.ALWAYS, "metavar": "TEXT"}
    commands = WATCHES if isinstance(help, str) else tuple(help)
    return Option(name, help=help, **{**settings, "commands": commands, **more})


def _output(name: str, help: str | dict[str, str], *others: str, streams: bool = False) -> Option:
    """A file that an audit, or another command as well, writes."""
    commands = (AUDIT, *others)
    return Option(name, Kind.WRITTEN, help, "FILE", FILES, commands=commands, streams=streams)


def _words(name: str, metavar: str, help: str) -> Option:
    """Words that stand on a page."""
    on_pages = (AUDIT, ESTIMATE, *TOLD)
    return Option(name, Kind.TEXT, help, metavar, FILES, commands=on_pages, echo=Echo.ALWAYS)


def _method(name: str, kind: Kind, metavar: str, help: str, default: object = None) -> Option:
    """An option about recalibration, for that command alone."""
    return Option(name, kind, help, metavar, METHOD, default, (RECALIBRATE,))


SAFE_CELLS = (
    "Put an apostrophe before text that a spreadsheet would take for a formula, in .csv and .tsv."
)
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
LABEL = {
    **dict.fromkeys((AUDIT, RECALIBRATE), "Labels: 0/1, two values, or several classes."),
    ESTIMATE: "Labels of LABELLED: 0/1, two values, or several classes.",
}
WEIGHTS = {
    **dict.fromkeys((AUDIT, RECALIBRATE), "Survey weights."),
    ESTIMATE: "Survey weights of LABELLED.",
}
POPULATION_WEIGHTS = "Survey weights of POPULATION."
SELECTION = "Known probabilities of labelling, in LABELLED."
SUPPORT = "Where part of the population is unlike all labelled rows: refuse, or exclude that part."
ALPHA = {
    AUDIT: "Size of the test; intervals cover 1 - P.",
    ESTIMATE: "Intervals cover 1 - P.",
    WATCH_START: "Error that is allowed, over all times.",
}
MATTERS = {
    AUDIT: "Local bias that would matter.",
    WATCH_START: "Local bias that is let pass; none without it.",
}
STATE = "The file that keeps the watch, such as watch.json."
PROMISE = (
    "ever: the probability of a false alarm, ever, is at most P; run-length: 1/P batches or more "
    "on average until one."
)
NAME_OF_BATCH = "Name of the batch, else of its file; rows that wait are known by it."
NAMES = {WATCH_START: "Name of the model.", WATCH_UPDATE: NAME_OF_BATCH}
DATE_COLUMN = "When the outcome window of a row closes; batches have to follow each other in it."
CLOSED_BEFORE = "Only rows whose window closes before it count; the others wait."
LATE = (
    "Take in rows of earlier times, whose outcomes came late; where rows wait, those of the batch "
    "of the same name."
)
NEW_MODEL = "Go on with another model in the watch that --state keeps: a new segment."
GATE_OF_A_WATCH = (
    "Exit 1 if there is an alarm, a number is biased, or any (default); each number has an error "
    "alpha of its own."
)
GATES = {
    AUDIT: "Exit 1 if the model is miscalibrated, a number is biased, or any of them (default).",
    **dict.fromkeys(TOLD, GATE_OF_A_WATCH),
}
SEED = "Same seed, same numbers."
TASK = "A number you report, such as 'mean(age) ~ 0.5'; again for more. See 'itrust tasks'."
WANTED = "The number you want, such as 'mean(age)'; again for more. See 'itrust tasks'."
OTHER_ROWS = "Other labelled rows: recalibrate with them, judge the result on FILE."
MISSING = "Rows that lack a value: error, level (of missing covariates) or drop."
CATEGORY = "Columns whose numbers are codes, such as race 1 to 5."
NUMBER = "Columns that are numbers, whatever they look like."
LABELS = "What codes mean: 'race: 1=White, 2=Black'; again for more columns."
WHERE = "Rows that count, such as 'age >= 18'."
NA_VALUES = "Codes of missing values, such as '-99,NA'."
SEP = "What separates columns of text files, such as ';' or tab."
DATES = "Whether 03/04/2024 has the day (dmy) or the month (mdy) first."
RULES = ("error", "level", "drop")
MIN_CELL = "What rests on fewer rows, or would tell of so few, is not shown."
NO_VALIDATION = "Leave out what validators print: slope, ICI, Hosmer-Lemeshow and others."
NO_ROBUSTNESS = "Leave out what would overturn the audit: selection, label error, flipped labels."
ROBUST_TO = (
    "With --gate: exit 1 only if the evidence survives this, such as 'odds:1.2' or "
    "'label-error:0.02,tolerance:0.03'."
)
OUT = "Those rows with the new column: .csv, .tsv, .jsonl (also .gz), .parquet, .feather."
STREAM = "Read FILE some rows at a time; done anyway if it takes a fifth of free memory."
REPORT = {AUDIT: "HTML page.", DEMO: "HTML page of the audit."}
ROWS = "The simulated rows, such as homes.csv, to try the other commands on."

CLUSTER = "Repeated units; several columns are crossed, and week(DATE) takes weeks."
STRATA = "Strata that clusters were drawn in."
REPLICATES = "Replicate weights, such as 'REPWT*'."
REPLICATION = "What made them: jk1, jk2, brr, fay:0.5, sdr or bootstrap."

GRADES = "Rating grades, for the table by grade that validators ask for; need not be in --on."

TABLE = (
    _column("label", LABEL),
    _column("prob", PROB, kind=Kind.SEVERAL),
    _column("on", ON, kind=Kind.SEVERAL, metavar="COL,COL"),
    _column("weights", WEIGHTS),
    _estimate("population-weights", POPULATION_WEIGHTS),
    _estimate("selection", SELECTION),
    _column("cluster", CLUSTER, kind=Kind.SEVERAL, metavar="COL,COL"),
    _column("strata", STRATA, kind=Kind.SEVERAL, metavar="COL,COL", commands=DESIGNS),
    _column("replicate-weights", REPLICATES, kind=Kind.SEVERAL, metavar="COLS", commands=DESIGNS),
    _column("replicate-method", REPLICATION, metavar="HOW", commands=DESIGNS),
    _watch("date-column", {WATCH_START: DATE_COLUMN}, panel=COLUMNS, metavar="COL"),
    _column("grades", GRADES, commands=(AUDIT,)),
    _column("positive", "The label that counts as 1; all others are 0.", metavar="VALUE"),
    _column("category", CATEGORY, kind=Kind.SEVERAL, metavar="COL,COL"),
    _column("number", NUMBER, kind=Kind.SEVERAL, metavar="COL,COL"),
    _column("value-labels", LABELS, kind=Kind.SEVERAL, metavar="TEXT"),
    _column("where", WHERE, metavar="COND"),
    _column("na-values", NA_VALUES, kind=Kind.SEVERAL, metavar="CODES"),
    _column("sep", SEP, metavar="CHAR"),
    _column("decimal", "Decimal sign of text files.", metavar="CHAR", choices=(".", ",")),
    _column("dates", DATES, metavar="ORDER", choices=("dmy", "mdy")),
    _column("missing", MISSING, metavar="HOW", default="error", choices=RULES, echo=Echo.CHANGED),
    _watch("state", STATE, kind=Kind.WRITTEN, metavar="FILE", panel=WATCHED),
    _test("task", Kind.SEVERAL, "EXPR", {AUDIT: TASK, ESTIMATE: WANTED, WATCH_START: TASK}),
    _test("recalibrate", Kind.READ, "FILE", OTHER_ROWS),
    _test("alpha", Kind.NUMBER, "P", ALPHA, 0.05),
    _test("tolerance", Kind.NUMBER, "SIZE", MATTERS, {AUDIT: 0.05}),
    _watch(
        "promise",
        {WATCH_START: PROMISE},
        metavar="HOW",
        default="ever",
        choices=("ever", "run-length"),
        echo=Echo.CHANGED,
    ),
    _watch("name", NAMES, metavar="NAME"),
    _watch("new-model", {WATCH_START: NEW_MODEL}, kind=Kind.SWITCH, metavar="", default=False),
    _watch("closed-before", {WATCH_UPDATE: CLOSED_BEFORE}, metavar="DATE"),
    _watch("late", {WATCH_UPDATE: LATE}, kind=Kind.SWITCH, metavar="", default=False),
    _test("draws", Kind.COUNT, "N", "Redraws of the labels.", 999, MAX_DRAWS),
    _test("seed", Kind.COUNT, "N", {AUDIT: SEED, ESTIMATE: SEED}, 0),
    _estimate(
        "support",
        SUPPORT,
        panel=TEST,
        metavar="HOW",
        default="refuse",
        choices=("refuse", "exclude"),
        echo=Echo.CHANGED,
    ),
    _output("report", REPORT, DEMO, ESTIMATE, *TOLD),
    Option("rows", Kind.WRITTEN, ROWS, "FILE", FILES, commands=(DEMO,)),
    _output("json", "All numbers; - for standard output.", ESTIMATE, *TOLD, streams=True),
    _output("junit", "JUnit XML for build servers.", *TOLD),
    _output("summary", "Markdown for a pull request.", *TOLD),
    _words("title", "TEXT", "Title of the page."),
    _words("model", "NAME", "What the model is called, and its version, for the page."),
    _words("date", "DATE", "Date for the page: 'today', or any text."),
    Option(
        "min-cell",
        Kind.COUNT,
        MIN_CELL,
        "ROWS",
        FILES,
        10,
        (AUDIT, ESTIMATE, *TOLD),
        echo=Echo.ALWAYS,
    ),
    Option(
        "no-validation",
        Kind.SWITCH,
        NO_VALIDATION,
        panel=FILES,
        default=False,
        commands=(AUDIT,),
        echo=Echo.CHANGED,
    ),
    Option(
        "no-robustness",
        Kind.SWITCH,
        NO_ROBUSTNESS,
        panel=FILES,
        default=False,
        commands=(AUDIT,),
        echo=Echo.CHANGED,
    ),
    Option(
        "gate",
        Kind.TEXT,
        GATES,
        "[model|tasks|any]",
        GATE,
        commands=(AUDIT, *TOLD),
        choices=("model", "tasks", "any"),
        bare="any",
    ),
    Option(
        "robust-to",
        Kind.SEVERAL,
        ROBUST_TO,
        "MARGIN",
        GATE,
        commands=(AUDIT,),
    ),
    _method("method", Kind.TEXT, "NAME", "How to recalibrate; see below.", "local"),
    _method("apply", Kind.READ, "FILE", "Rows to recalibrate."),
    _method("out", Kind.WRITTEN, "FILE", OUT),
    _method("column", Kind.TEXT, "NAME", "Name of the new column.", "p_recalibrated"),
    _method("safe-cells", Kind.SWITCH, "", SAFE_CELLS, False),
    _method("save", Kind.WRITTEN, "FILE", "Keep what was learned as JSON."),
    _method("load", Kind.READ, "FILE", "Take what was saved instead of fitting."),
    Option("stream", Kind.SWITCH, STREAM, default=False),
    Option(
        "quiet",
        Kind.SWITCH,
        "Nothing on stderr but errors and the file of settings.",
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

    def on_standard_output(self, name: str) -> bool:
        """Whether an output is to go to standard output in place of a file."""
        return bool(self.values.get(name) == STANDARD)

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


def is_of_the_start(key: str) -> bool:
    """Whether an option is one that a watch is told at its start, and not by updates."""
    option = BY_KEY.get(key)
    return (
        option is not None
        and WATCH_START in option.commands
        and WATCH_UPDATE not in option.commands
    )
