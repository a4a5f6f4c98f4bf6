"""What the runners of agents that are not ours share: the case as they send it, and what they make of the answer."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from harness_repo.runtime.hiding import hide_secrets
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.reading import read_trajectory
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import Status, Trajectory

# Of one answer: a long trajectory has a few hundred kB.
MOST_BYTES = 4 * 1024 * 1024
# Of the numbers, texts, lists and objects in it: what is small as text may take seconds to walk over.
MOST_VALUES = 200_000

# What an agent may say of its run. It is not for it to say that a failure is nobody's fault: that is no score.
CLAIMS: tuple[Status, ...] = (
    "ok",
    "turn_limit",
    "tool_call_limit",
    "time_limit",
    "token_limit",
    "hook_limit",
    "blocked",
)


def case_to_json(case: RunCase) -> bytes:
    """The case as one JSON object, schemas/case.schema.json; plain ASCII, so that no reader has to guess."""
    return json.dumps(case.to_dict(), default=str).encode()


def read_answer(answer: bytes, runner: dict[str, Any], elapsed_ms: float) -> Trajectory:
    """The trajectory that an agent gave back; the time from outside stands where it gave none.

    One that says that it failed is "agent_error": it has answered, if badly. What it says of a conversation is left
    out: whoever talks to it knows. Takes long for a large answer. Raises ValueError that says what is wrong with it.
    """
    try:
        text = answer.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        raise ValueError(f"not UTF-8: {failure}") from None
    if not text.strip():
        raise ValueError("empty")
    value = read_json(text)
    _check_size(value)
    answered = read_trajectory(value)
    is_timed = isinstance(value, dict) and ("latency_ms" in value or answered.latency_ms > 0)
    return replace(
        answered,
        status=answered.status if _is_claim(answered) else "agent_error",
        # What is kept of calls is for us to say.
        calls=[replace(call, cache_key="", is_cached=False) for call in answered.calls],
        runner=runner,
        latency_ms=answered.latency_ms if is_timed else elapsed_ms,
        conversation=[],
        user_calls=[],
    )


def _is_claim(answered: Trajectory) -> bool:
    """Whether it may say so: out of time without a word is a failure too."""
    return answered.status in CLAIMS and (answered.status != "time_limit" or answered.reply is not None)


def hide_in_run(run: Trajectory, secrets: Sequence[str]) -> Trajectory:
    """The run without these secrets, wherever they stand and however they are written."""
    if not secrets:
        return run
    record = run.to_dict()
    kept = {name: record.pop(name) for name in ("format", "status")}
    try:
        return read_trajectory({**_as_object(hide_secrets(record, secrets)), **kept})
    # A secret such as "user" stands where the format wants that word.
    except ValueError:
        return failed_run("runner_error", "the answer cannot be kept without a secret", {}, run.latency_ms)


def _as_object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _check_size(value: object) -> None:
    level, count = [value], 0
    while level:
        count += len(level)
        if count > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES} values in it")
        level = [inner for outer in level for inner in _inside(outer)]


def _inside(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def failed_run(status: Status, error: str, runner: dict[str, Any], elapsed_ms: float) -> Trajectory:
    """The record of a run that brought no answer."""
    return Trajectory(status, None, error=error, runner=runner, latency_ms=elapsed_ms)


def shorten(text: str, most: int = 300) -> str:
    """The beginning of a text, for a message."""
    return text if len(text) <= most else text[: most - 1] + "…"
