"""Beside the stages: which turn of a failure went wrong first, as far as somebody or something says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evolution.models import Diagnosis, FailureCase
from evolution.states import DiagnosisState


class Accuser(StrEnum):
    """Who says so, the most trustworthy first."""

    SOURCE = "source"
    DIAGNOSIS = "diagnosis"
    # nobody but a tool call with an error
    TOOL = "tool"


@dataclass(frozen=True)
class Blame:
    """The agent's turn, from 1, that went wrong first."""

    turn: int
    by: Accuser
    # what the diagnosis quotes, or the error of the tool call
    detail: str = ""


def find_blame(case: FailureCase) -> Blame | None:
    """What the source says, else the cluster's diagnosis of this very case, else its first tool call that failed."""
    if case.blamed_turn:
        return Blame(case.blamed_turn, Accuser.SOURCE)
    return _diagnosed(case) or _failed_call(case.trajectory)


def _diagnosed(case: FailureCase) -> Blame | None:
    """What the newest likely hypothesis says of the case, with the passage that it quotes there."""
    if case.cluster_id is None:
        return None
    diagnoses = Diagnosis.objects.filter(cluster=case.cluster_id).exclude(state=DiagnosisState.REJECTED)
    recent = diagnoses.only("evidence", "first_wrong_turns").order_by("-exchange_id", "rank", "-pk")[:20]
    for diagnosis in recent:
        quoted = [item for item in _rows(diagnosis.evidence) if item.get("case") == case.pk]
        said = [item for item in _rows(diagnosis.first_wrong_turns) if item.get("case") == case.pk]
        turn = next((turn for item in (*said, *quoted) if (turn := _turn(item.get("turn")))), 0)
        if turn:
            return Blame(turn, Accuser.DIAGNOSIS, _quote_at(turn, quoted))
    return None


def _quote_at(turn: int, quoted: Sequence[Mapping[str, Any]]) -> str:
    """What is quoted of that turn, else of another."""
    nearest = min(quoted, key=lambda item: abs(_turn(item.get("turn")) - turn), default={})
    return str(nearest.get("quote") or "")


def _failed_call(trajectory: Any) -> Blame | None:
    """The first call with an error; a trajectory that numbers no turns says nothing."""
    calls = _rows(trajectory.get("tool_calls")) if isinstance(trajectory, dict) else []
    for call in calls:
        turn = _turn(call.get("turn"))
        if call.get("error") and turn:
            return Blame(turn, Accuser.TOOL, str(call["error"]))
    return None


def _turn(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _rows(value: Any) -> Sequence[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
