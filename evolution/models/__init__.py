"""The loop's records. States are written by `evolution.transitions` only."""

from evolution.models.calls import BudgetHold, EvaluationUsage, LimitShare, ModelCall, SharedLimit
from evolution.models.cases import Cluster, Embedding, FailureCase, Sighting
from evolution.models.datasets import Dataset, DatasetCase, DatasetVersion
from evolution.models.evaluations import CaseResult, Evaluation, EvaluationShard, StoredBatch, Verdict
from evolution.models.events import Event, Job
from evolution.models.harnesses import Harness, Release
from evolution.models.proposals import Diagnosis, Proposal, Step

__all__ = [
    "BudgetHold",
    "CaseResult",
    "Cluster",
    "Dataset",
    "DatasetCase",
    "DatasetVersion",
    "Diagnosis",
    "Embedding",
    "Evaluation",
    "EvaluationShard",
    "EvaluationUsage",
    "Event",
    "FailureCase",
    "Harness",
    "Job",
    "LimitShare",
    "ModelCall",
    "Proposal",
    "Release",
    "SharedLimit",
    "Sighting",
    "Step",
    "StoredBatch",
    "Verdict",
]
