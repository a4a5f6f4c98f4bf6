"""What the runners of agents that are not ours share: the case as they send it, and what they make of the answer."""

import json
from dataclasses import replace
from typing import Any

from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.reading import read_trajectory
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import Status, Trajectory

# Of one answer: a long trajectory has a few hundred kB.
MOST_BYTES = 16 * 1024 * 1024


def case_to_json(case: RunCase) -> bytes:
    """The case as one JSON object, schemas/case.schema.json; plain ASCII, so that no reader has to guess."""
    return json.dumps(case.to_dict(), default=str).encode()


def read_answer(answer: bytes, runner: dict[str, Any], elapsed_ms: float) -> Trajectory:
    """The trajectory that an agent gave back; the time from outside stands where it gave none.

    Raises ValueError that says what is wrong with the answer.
    """
    try:
        text = answer.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        raise ValueError(f"not UTF-8: {failure}") from None
    if not text.strip():
        raise ValueError("empty")
    value = read_json(text)
    answered = read_trajectory(value)
    is_timed = isinstance(value, dict) and ("latency_ms" in value or answered.latency_ms > 0)
    return replace(answered, runner=runner, latency_ms=answered.latency_ms if is_timed else elapsed_ms)


def failed_run(status: Status, error: str, runner: dict[str, Any], elapsed_ms: float) -> Trajectory:
    """The record of a run that brought no answer."""
    return Trajectory(status, None, error=error, runner=runner, latency_ms=elapsed_ms)


def shorten(text: str, most: int = 300) -> str:
    """The beginning of a text, for a message."""
    return text if len(text) <= most else text[: most - 1] + "…"
