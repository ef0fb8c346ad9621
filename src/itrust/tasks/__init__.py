"""The numbers people report: how they are written, their bias, their estimates on a population."""

from itrust.tasks import parser
from itrust.tasks.bias import (
    TaskFinding,
    TaskResult,
    checked_tasks,
    covered,
    evaluate_tasks,
)
from itrust.tasks.expressions import Task
from itrust.tasks.makers import as_tasks, mean, prevalence, share
from itrust.tasks.parser import parse, parse_condition
from itrust.tasks.population import Assumption, Estimate, TaskEstimate
from itrust.tasks.scores import spread_of

__all__ = [
    "Assumption",
    "Estimate",
    "Task",
    "TaskEstimate",
    "TaskFinding",
    "TaskResult",
    "as_tasks",
    "checked_tasks",
    "covered",
    "evaluate_tasks",
    "mean",
    "parse",
    "parse_condition",
    "parser",
    "prevalence",
    "share",
    "spread_of",
]
