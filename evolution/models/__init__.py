"""The loop's records. States are written by `evolution.transitions` only."""

from evolution.models.cases import Cluster, Embedding, FailureCase, Sighting
from evolution.models.datasets import Dataset, DatasetCase, DatasetVersion
from evolution.models.evaluations import CaseResult, Evaluation, EvaluationShard, Verdict
from evolution.models.events import Event, Job
from evolution.models.harnesses import Harness, Release
from evolution.models.proposals import Diagnosis, Proposal, Step

__all__ = [
    "CaseResult",
    "Cluster",
    "Dataset",
    "DatasetCase",
    "DatasetVersion",
    "Diagnosis",
    "Embedding",
    "Evaluation",
    "EvaluationShard",
    "Event",
    "FailureCase",
    "Harness",
    "Job",
    "Proposal",
    "Release",
    "Sighting",
    "Step",
    "Verdict",
]
