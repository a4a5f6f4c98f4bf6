"""What the loop needs from the outside: the contracts that the adapters keep. ChatModel is harness_repo's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from harness_repo.runtime.chat import ChatModel

Vectors = NDArray[np.float32]

# What a harness may not set as a parameter of calls: the runtime says these, and they are not sent.
RESERVED_PARAMETERS = frozenset(
    {"model", "messages", "tools", "response_format", "stream", "stream_options", "n"}
)


@dataclass(frozen=True)
class Check:
    """A check of the source: an assertion, a grader, a unit test."""

    name: str
    passed: bool
    reason: str = ""


@dataclass(frozen=True)
class Feedback:
    """What a person, or a program that stands in for one, said of a record."""

    name: str
    # a number, a word such as "down", or true and false
    value: float | str | bool | None = None
    comment: str = ""


@dataclass(frozen=True)
class Record:
    """One record of an import, as a format's reader hands it over, fit for PostgreSQL.

    What it says of success stands in `failed`, `scores`, `errors`, `checks` and `feedback`; whether that makes it a
    failure is for the rule of the import to say.
    """

    # format, such as tau-bench, and the record's id there
    source: str
    source_id: str
    # whether it went wrong, where the source itself says so
    failed: bool | None
    # physical line of the file where the record starts, 1-based
    line: int
    request: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    # trajectory/1
    trajectory: dict[str, Any] = field(default_factory=dict)
    reply: str = ""
    symptom: str = ""
    scores: dict[str, Any] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    category: str = ""
    harness_commit: str = ""
    # what broke: exceptions, spans with an error status
    errors: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    # whether the source has a status that would tell of an error, so that none means that it went well
    has_status: bool = False
    # the agent's turn, from 1, that went wrong first, where the source says so
    blamed_turn: int | None = None
    happened_at: datetime | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rejected:
    """A record that can't be used, and why; the others of its file are read all the same."""

    # line of the file where the record starts, 1-based
    line: int
    reason: str
    # its place among the records, 1-based; 0 where the line says it all
    number: int = 0


class Unread(NamedTuple):
    """A record that is known by name and by what it would be read from, and is read when somebody needs the rest.

    One that is stored already as the same text was read need not be.
    """

    source: str
    source_id: str
    line: int
    # of its text, and of the reader itself
    digest: bytes
    read: Callable[[], Record | Rejected]


# What readers hand over.
Found = Record | Rejected | Unread


def read_found(item: Found) -> Record | Rejected:
    """The record, read now if it was not before."""
    return item.read() if isinstance(item, Unread) else item


@dataclass(frozen=True)
class MeasuredCase:
    """A case of results that were made elsewhere, as far as their file has it."""

    # the source's own id
    key: str
    # as in a dataset: danmaku and history, or a user
    request: dict[str, Any] = field(default_factory=dict)
    category: str = ""
    # empty is found out from the request
    language: str = ""
    split: str = "dev"
    context: dict[str, Any] = field(default_factory=dict)
    expected: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasuredResult:
    """What another program measured of one (case, repeat): scores or an error; named as in models.CaseResult."""

    key: str
    # 0-based
    repeat: int = 0
    accuracy: float | None = None
    effectiveness: float | None = None
    reasons: dict[str, Any] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    reply: str = ""
    # trajectory/1, {} where the source has none
    trajectory: dict[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    judge_prompt_tokens: int = 0
    judge_completion_tokens: int = 0
    judge_cached_tokens: int = 0
    latency_ms: float = 0.0
    call_ms: list[float] = field(default_factory=list)
    # in dollars, which is what the sources count in; None when they don't say
    cost: float | None = None
    error_kind: str = ""
    error: str = ""


@dataclass(frozen=True)
class MeasuredRun:
    """Results that another program made, as a reader hands them over."""

    # such as tau2-bench
    format: str
    # the source's name for its set of cases
    dataset: str
    # what answered, what scored, and what played the user, by the source's names
    model: str
    judge: str
    user_model: str
    cases: list[MeasuredCase]
    results: list[MeasuredResult]
    # results that the source meant to make of each case
    repeats: int = 1
    # which of several runs in the file it is, empty where there is one
    variant: str = ""
    # keys of all cases of the source's set where it says so, though some may not be in the file
    declared: list[str] = field(default_factory=list)
    # what could not be read, each with its place
    problems: list[str] = field(default_factory=list)
    # what else the source says of itself, for people
    details: dict[str, Any] = field(default_factory=dict)


class Embedder(Protocol):
    """Turns texts into unit vectors; the same text always gives the same vector."""

    name: str

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, shape (len(texts), dimensions), L2 norm 1."""


@dataclass(frozen=True)
class Grouping:
    """A clusterer's answer."""

    # one label per row; -1 is "in no cluster"
    labels: list[int]
    # membership strength per row, 0-1
    strengths: list[float]
    # what the clusterer chose, kept for the record
    parameters: dict[str, Any] = field(default_factory=dict)


class Clusterer(Protocol):
    """Groups vectors by density; deterministic."""

    def group(self, vectors: Vectors, known: Sequence[int] | None = None) -> Grouping:
        """Return a label per row, in row order.

        `known` has the label of each row of last time, -1 for none: groups stay together and apart as they were,
        unless another grouping is clearly better.
        """


class NamedModel(NamedTuple):
    """A chat model and the name that requests to it carry."""

    model: ChatModel
    name: str
