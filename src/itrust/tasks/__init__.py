"""The numbers people report: how they are written, their bias, their estimates on a population."""

from itrust.tasks import parser
from itrust.tasks.bias import (
    TASK_HEAD,
    TaskResult,
    checked_tasks,
    covered,
    evaluate_tasks,
    spread_of,
)
from itrust.tasks.expressions import Task, as_tasks, mean, parse, prevalence, share
from itrust.tasks.population import Estimate, TaskEstimate

__all__ = [
    "TASK_HEAD",
    "Estimate",
    "Task",
    "TaskEstimate",
    "TaskResult",
    "as_tasks",
    "checked_tasks",
    "covered",
    "evaluate_tasks",
    "mean",
    "parse",
    "parser",
    "prevalence",
    "share",
    "spread_of",
]
