from itrust.data import parse_condition as parse_condition
from itrust.tasks import expressions as expressions
from itrust.tasks import parser as parser
from itrust.tasks.arithmetic import ARITHMETIC as ARITHMETIC
from itrust.tasks.arithmetic import Bounds as Bounds
from itrust.tasks.arithmetic import Covariate as Covariate
from itrust.tasks.arithmetic import Indicator as Indicator
from itrust.tasks.arithmetic import Linearised as Linearised
from itrust.tasks.arithmetic import Quantity as Quantity
from itrust.tasks.bias import TaskFinding as TaskFinding
from itrust.tasks.bias import TaskResult as TaskResult
from itrust.tasks.bias import check_tasks as check_tasks
from itrust.tasks.bias import checked_tasks as checked_tasks
from itrust.tasks.bias import covered as covered
from itrust.tasks.bias import evaluate_tasks as evaluate_tasks
from itrust.tasks.bias import task_part as task_part
from itrust.tasks.collected import SCHEMA as SCHEMA
from itrust.tasks.collected import EstimateProvenance as EstimateProvenance
from itrust.tasks.collected import RefusedTask as RefusedTask
from itrust.tasks.collected import TaskEstimates as TaskEstimates
from itrust.tasks.disclosure import ShownNumbers as ShownNumbers
from itrust.tasks.estimated import MAX_NEW as MAX_NEW
from itrust.tasks.estimated import MAX_UNLIKE as MAX_UNLIKE
from itrust.tasks.estimated import Assumption as Assumption
from itrust.tasks.estimated import BestReason as BestReason
from itrust.tasks.estimated import Estimate as Estimate
from itrust.tasks.estimated import TaskEstimate as TaskEstimate
from itrust.tasks.expressions import Combined as Combined
from itrust.tasks.expressions import Leaf as Leaf
from itrust.tasks.expressions import Named as Named
from itrust.tasks.expressions import OfTask as OfTask
from itrust.tasks.expressions import Ratio as Ratio
from itrust.tasks.expressions import Task as Task
from itrust.tasks.expressions import TaskRows as TaskRows
from itrust.tasks.expressions import label_apart as label_apart
from itrust.tasks.expressions import reestimated as reestimated
from itrust.tasks.makers import as_tasks as as_tasks
from itrust.tasks.makers import coefficient as coefficient
from itrust.tasks.makers import mean as mean
from itrust.tasks.makers import prevalence as prevalence
from itrust.tasks.makers import share as share
from itrust.tasks.outcomes import class_tasks as class_tasks
from itrust.tasks.parser import parse as parse
from itrust.tasks.population import estimate_tasks as estimate_tasks
from itrust.tasks.regressions import Coefficient as Coefficient
from itrust.tasks.terms import LevelOf as LevelOf
from itrust.tasks.uncertainty import FEW_NOTE as FEW_NOTE
from itrust.tasks.uncertainty import LabelLaw as LabelLaw
from itrust.tasks.uncertainty import LabelledTask as LabelledTask
from itrust.tasks.uncertainty import Uncertainty as Uncertainty
from itrust.tasks.uncertainty import few_labels as few_labels

__all__ = [
    "Assumption",
    "BestReason",
    "Estimate",
    "EstimateProvenance",
    "RefusedTask",
    "Task",
    "TaskEstimate",
    "TaskEstimates",
    "TaskFinding",
    "TaskResult",
    "coefficient",
    "estimate_tasks",
    "mean",
    "parse",
    "parse_condition",
    "prevalence",
    "share",
]
