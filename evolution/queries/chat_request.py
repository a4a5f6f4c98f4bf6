"""What a model was sent before a turn of a failure, for making that call again outside."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evolution.loop.repositories import read_version
from evolution.models import FailureCase, Harness
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.agent import tool_definitions
from harness_repo.runtime.asked import find_asked
from harness_repo.runtime.called_tools import infer_tools


@dataclass(frozen=True)
class ChatRequest:
    """A chat-completions request; without a model where nobody said which it was, and without tools likewise."""

    payload: dict[str, Any]
    # whether the tools are read off the calls, and so may be fewer or take other arguments than those offered
    are_tools_inferred: bool = False


def build_chat_request(case: FailureCase, turn: int) -> ChatRequest:
    """The request before the agent's turn: of the tools those that were offered, else those that were called."""
    request = case.request if isinstance(case.request, dict) else {}
    model = _model_of(case, turn)
    payload: dict[str, Any] = {
        **({"model": model} if model else {}),
        "messages": find_asked(case.trajectory, request, turn),
    }
    if tools := _offered_tools(case):
        return ChatRequest({**payload, "tools": tools})
    called = infer_tools(case.trajectory)
    return ChatRequest({**payload, "tools": called} if called else payload, are_tools_inferred=bool(called))


def last_turn(case: FailureCase) -> int:
    """The number of the agent's last message, 1 where there is none."""
    messages = case.trajectory.get("messages") if isinstance(case.trajectory, dict) else None
    said = messages if isinstance(messages, list) else []
    return sum(isinstance(message, dict) and message.get("role") == "assistant" for message in said) or 1


def _model_of(case: FailureCase, turn: int) -> str:
    """What the turn names, else the source, else the evaluation; "" where nobody does."""
    return next(filter(None, _named_models(case, turn)), "")


def _named_models(case: FailureCase, turn: int) -> Iterator[str]:
    calls = case.trajectory.get("calls") if isinstance(case.trajectory, dict) else None
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict) and call.get("turn") == turn and isinstance(call.get("model"), str):
            yield call["model"]
    known = case.context.get("model") if isinstance(case.context, dict) else None
    if isinstance(known, str):
        yield known
    # An agent that is not ours stands there by its command or address.
    if case.evaluation and not case.evaluation.runner:
        yield case.evaluation.model


def _offered_tools(case: FailureCase) -> list[dict[str, Any]]:
    """What the source says that the model was offered, else the tools of the version that ran."""
    told = case.context.get("tools") if isinstance(case.context, dict) else None
    if isinstance(told, list) and told:
        return [tool for tool in told if isinstance(tool, dict)]
    if not case.harness_commit or (case.evaluation and case.evaluation.runner):
        return []
    return _version_tools(case.harness, case.harness_commit)


def _version_tools(harness: Harness, commit: str) -> list[dict[str, Any]]:
    try:
        return tool_definitions(read_version(harness, commit))
    except HarnessRepoError:
        # A production trace may name a commit of another repository.
        return []
