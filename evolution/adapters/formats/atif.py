"""Trajectories in Harbor's Agent Trajectory Interchange Format (ATIF, v1.x); a record is a trajectory.

A file holds one, a list, or an object of several by name; trajectories of sub-agents are records of their own.
https://github.com/laude-institute/harbor/blob/main/docs/rfcs/0001-trajectory-format.md
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.chats import read_tools
from evolution.adapters.formats.items import Item, Where, attempt, take_object
from evolution.adapters.formats.logged_runs import find_commit
from evolution.adapters.formats.messages import Message, check_messages, conversation
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, read_time
from evolution.adapters.formats.values import RecordProblem, number
from evolution.ports import Record, Rejected
from harness_repo.runtime.trajectory import CallRecord

NAME = SOURCE = "atif"
_ROLES = {"user": "user", "agent": "assistant", "system": "system"}
_MOST = 2**31 - 1


def fits(value: Any) -> bool:
    """Say whether a JSON value is such a trajectory, or an object of several."""
    if not isinstance(value, dict):
        return False
    return _is_trajectory(value) or (bool(value) and all(_is_trajectory(inner) for inner in value.values()))


def _is_trajectory(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "steps" in value
        and as_text(value.get("schema_version")).startswith("ATIF")
    )


def read(items: Iterator[Item], where: Where) -> Iterator[Record | Rejected]:
    """Read the trajectories of a file."""
    for item in items:
        try:
            value = take_object(item)
        except RecordProblem as problem:
            yield Rejected(item.line, str(problem), item.number)
            continue
        seen: set[str] = set()
        for trajectory in _open(value):
            read_it = partial(_read_trajectory, trajectory, where, item.line, seen)
            yield attempt(read_it, item.line, item.number)


def _open(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The trajectories of one JSON value, sub-agents' after those that they worked for."""
    inner = [value] if "steps" in value or not value else [as_dict(each) for each in value.values()]
    for trajectory in inner:
        yield trajectory
        for child in as_list(trajectory.get("subagent_trajectories")):
            yield from _open(as_dict(child))


def _read_trajectory(trajectory: dict[str, Any], where: Where, line: int, seen: set[str]) -> Record:
    steps = [step for step in as_list(trajectory.get("steps")) if isinstance(step, dict)]
    if not steps:
        raise RecordProblem(_("the trajectory has no steps"))
    agent = as_dict(trajectory.get("agent"))
    said = conversation(
        check_messages([message for step in steps for message in _read_step(step)]),
        calls=list(_list_calls(steps)),
    )
    extra = as_dict(trajectory.get("extra"))
    reward = number(
        extra.get("reward", as_dict(as_dict(trajectory.get("final_metrics")).get("extra")).get("reward"))
    )
    return Record(
        source=SOURCE,
        source_id=_identify(trajectory, agent, where, seen),
        failed=None,
        line=line,
        request=said.request,
        context=_read_context(trajectory, agent),
        trajectory=said.trajectory,
        reply=said.reply,
        scores={} if reward is None else {"reward": reward},
        happened_at=next(filter(None, (read_time(step.get("timestamp")) for step in steps)), None),
        harness_commit=find_commit(extra, as_dict(agent.get("extra")), as_text(agent.get("version"))),
    )


def _identify(trajectory: dict[str, Any], agent: dict[str, Any], where: Where, seen: set[str]) -> str:
    """The trajectory's own id; those of one session are told apart by their agents and their order."""
    identity = as_text(trajectory.get("trajectory_id")) or as_text(trajectory.get("session_id")) or where.stem
    if identity in seen:
        identity = f"{identity}/{as_text(agent.get('name'))}"
    base, copies = identity, 1
    while identity in seen:
        copies += 1
        identity = f"{base}/{copies}"
    seen.add(identity)
    return identity


def _read_step(step: dict[str, Any]) -> Iterator[Message]:
    """The message of a step, and the results that came back in it."""
    source = as_text(step.get("source"))
    message: Message = {"role": _ROLES.get(source, source or "system"), "content": step.get("message")}
    if source == "agent":
        message["reasoning_content"] = step.get("reasoning_content")
        message["tool_calls"] = as_list(step.get("tool_calls"))
    # A step of the system may be nothing but what the surroundings answered.
    if message["content"] not in (None, "") or source in {"agent", "user"}:
        yield message
    for result in map(as_dict, as_list(as_dict(step.get("observation")).get("results"))):
        content = result.get("content")
        refs = [
            as_text(as_dict(ref).get("session_id")) for ref in as_list(result.get("subagent_trajectory_ref"))
        ]
        if content is None and refs:
            content = "[" + _("sub-agent") + f": {', '.join(refs)}]"
        yield {"role": "tool", "content": content, "tool_call_id": as_text(result.get("source_call_id"))}


def _list_calls(steps: list[dict[str, Any]]) -> Iterator[CallRecord]:
    """The model calls that the steps have figures of."""
    made = [step for step in steps if step.get("source") == "agent"]
    for turn, step in enumerate(made, 1):
        metrics = as_dict(step.get("metrics"))
        if metrics:
            extra = as_dict(metrics.get("extra"))
            yield CallRecord(
                turn,
                min(max(float(number(extra.get("latency_ms")) or 0.0), 0.0), float(_MOST)),
                _count(metrics.get("prompt_tokens")),
                _count(metrics.get("completion_tokens")),
                as_text(step.get("model_name")),
                _count(metrics.get("cached_tokens")),
                as_text(extra.get("finish_reason")),
            )


def _count(value: Any) -> int:
    return min(max(int(number(value) or 0), 0), _MOST)


def _read_context(trajectory: Mapping[str, Any], agent: Mapping[str, Any]) -> dict[str, Any]:
    named = {
        "session": as_text(trajectory.get("session_id")),
        "agent": as_text(agent.get("name")),
        "version": as_text(agent.get("version")),
        "model": as_text(agent.get("model_name")),
        "notes": as_text(trajectory.get("notes")),
        "tools": read_tools(as_list(agent.get("tool_definitions"))),
    }
    return {name: value for name, value in named.items() if value}
