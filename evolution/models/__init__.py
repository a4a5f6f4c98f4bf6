"""The loop's records. States are written by `evolution.transitions` only."""

from evolution.models.calls import BudgetHold, EvaluationUsage, LimitShare, ModelCall, SharedLimit
from evolution.models.cases import CaseNote, CaseText, Cluster, Embedding, FailureCase, Sighting
from evolution.models.cluster_runs import ClusterRun, RunGroup
from evolution.models.datasets import Dataset, DatasetCase, DatasetVersion
from evolution.models.evaluations import CaseResult, Evaluation, EvaluationShard, StoredBatch, Verdict
from evolution.models.events import Event, Job
from evolution.models.harnesses import Harness, HarnessRole, Release
from evolution.models.intake import ImportProblem, ImportRun, MaskingRule, Source, TracePart
from evolution.models.proposals import Diagnosis, Proposal, Step
from evolution.models.review import ConflictResolution, Exchange, Review, ReviewComment, ReviewThread
from evolution.models.triage import BulkAction, BulkChange, SavedView

__all__ = [
    "BudgetHold",
    "BulkAction",
    "BulkChange",
    "CaseNote",
    "CaseResult",
    "CaseText",
    "Cluster",
    "ClusterRun",
    "ConflictResolution",
    "Dataset",
    "DatasetCase",
    "DatasetVersion",
    "Diagnosis",
    "Embedding",
    "Evaluation",
    "EvaluationShard",
    "EvaluationUsage",
    "Event",
    "Exchange",
    "FailureCase",
    "Harness",
    "HarnessRole",
    "ImportProblem",
    "ImportRun",
    "Job",
    "LimitShare",
    "MaskingRule",
    "ModelCall",
    "Proposal",
    "Release",
    "Review",
    "ReviewComment",
    "ReviewThread",
    "RunGroup",
    "SavedView",
    "SharedLimit",
    "Sighting",
    "Source",
    "Step",
    "StoredBatch",
    "TracePart",
    "Verdict",
]
