"""`itrust tasks`: the task grammar, and one task explained."""

from __future__ import annotations

from itrust._core import wrapped
from itrust.cli.console import answer, width
from itrust.cli.help import NARROW
from itrust.tasks import parser as grammar

EXAMPLES = {
    "mean(age)": "mean age among positives",
    'mean(age | race == "b")': "the same in one group",
    "share(age >= 65)": "share of positives who are 65 or over",
    'prevalence(region == "south")': "rate of positives in the south",
    "prevalence()": "rate of positives among all rows",
    'mean(age | race == "b") - mean(age | race == "w")': "a gap between groups",
    'prevalence(region == "south") / prevalence()': "a ratio",
    "mean(age) ~ 0.5": "a bias of 0.5 would matter: the tolerance",
    "Age of owners: mean(age) ~ 0.5": "with a title to be shown by",
    "mean(log(income))": "formulas: + - * / **, log, log10, exp, sqrt, abs",
}
CLASSES = {
    'prevalence("tie" | region == "south")': "rate of one class in the south",
    'mean(age | y == "tie")': "mean age among rows of one class; y is the label",
}
REGRESSIONS = {
    "coef(age ; age + income)": "coefficient of age in a logistic regression",
    'coef(race["b"] ; age + race)': "of one level, against the first one",
    'coef(race["b"] ; age + race against "w")': "against another level",
    "coef(age ; age + income ; identity)": "differences of rates; log: logs of ratios of rates",
    "coef(age:urban ; age + urban + age:urban)": "an interaction",
    'coef(age ; age | region == "south")': "among some rows",
}
CONDITIONS = {
    'race == "b"': "also != < <= > >=",
    'region in ("south", "west")': "also not in",
    "income is missing": "also is not missing",
    'seen >= "2026-01-31"': "text and dates stand in quotes",
    "`hours per week` > 40": "names with blanks or hyphens stand in backticks",
    'not (age < 40 or race == "b")': "and, or, not, parentheses",
}
INTRODUCTION = (
    "A task is the number you want to report. The audit computes it with probabilities and with "
    "labels, and says whether they differ. Means and shares are among positives."
)
SHELL = "In a shell, put the whole task between single quotes:"
COMMAND = "  itrust audit homes.csv --on age,race --task 'mean(age | race == \"b\")'"
LAST = "'itrust tasks EXPR' reads one task and says what it is."


def explain(expression: str | None) -> None:
    """Tell the grammar, or what one expression means."""
    answer("\n".join(_grammar() if expression is None else _one(expression)))


def _grammar() -> list[str]:
    columns = width()
    return [
        *wrapped(INTRODUCTION, columns),
        "",
        *_pairs(EXAMPLES, columns),
        "",
        "Of several classes every number names its own:",
        *_pairs(CLASSES, columns),
        "",
        "Regressions of the label on covariates:",
        *_pairs(REGRESSIONS, columns),
        "",
        "Conditions:",
        *_pairs(CONDITIONS, columns),
        "",
        *wrapped(SHELL, columns),
        COMMAND,  # whole: a command that is broken up cannot be copied
        "",
        *wrapped(LAST, columns),
    ]


def _pairs(pairs: dict[str, str], columns: int) -> list[str]:
    """Examples beside their meaning, or above it where either needs the room."""
    lines = []
    for example, meaning in pairs.items():
        beside = f"  {example:<31} {meaning}"
        if columns >= NARROW and len(example) <= 31 and len(beside) <= columns:
            lines.append(beside)
        else:
            lines += [f"  {example}", *wrapped(meaning, columns, "      ")]
    return lines


def _one(expression: str) -> list[str]:
    task = grammar.parse(expression)
    said = [f"read as  {task.formula}", f"columns  {', '.join(sorted(task.names)) or 'none'}"]
    return [line for text in said for line in wrapped(text, width(), "", " " * 9)]
