"""Beside the stages: what the tools answered in a trajectory, as the fixtures of a dataset case."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness_repo.runtime.json_text import read_json

# What the runtime answers by itself.
OWN_TOOLS = frozenset({"load_skill"})


@dataclass(frozen=True)
class Taken:
    """Fixtures, and how many calls there is none of."""

    # {tool: [{"arguments", "result"}]}, as harness_repo.runtime.sandbox reads them
    fixtures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    # calls that failed, or that nobody answered: a fixture can't fail
    failed: int = 0
    # calls whose arguments are no object, so that no later call would match
    unusable: int = 0


def take_fixtures(trajectory: Any) -> Taken:
    """The answers of a run's tool calls, in the order in which they match: those with most arguments first.

    Of calls with the same arguments the first answer counts. Any stored trajectory will do.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    failed = unusable = 0
    for call in _calls(trajectory):
        name = call.get("name")
        arguments = _read_arguments(call.get("arguments"))
        if not isinstance(name, str) or not name or name in OWN_TOOLS:
            continue
        if call.get("error") or call.get("result") is None:
            failed += 1
        elif not isinstance(arguments, dict):
            unusable += 1
        else:
            same = json.dumps(arguments, sort_keys=True)
            entry = {"arguments": arguments, "result": call["result"]}
            found.setdefault(name, {}).setdefault(same, entry)
    # An entry matches every call that has its arguments, and perhaps more.
    ordered = {
        name: sorted(entries.values(), key=lambda entry: -len(entry["arguments"]))
        for name, entries in found.items()
    }
    return Taken(ordered, failed, unusable)


def _calls(trajectory: Any) -> Iterator[dict[str, Any]]:
    calls = trajectory.get("tool_calls") if isinstance(trajectory, dict) else None
    return (call for call in calls if isinstance(call, dict)) if isinstance(calls, list) else iter(())


def _read_arguments(value: Any) -> Any:
    """Arguments that are JSON in a text as their value, none at all as {}; anything else as it stands."""
    if not isinstance(value, str):
        return {} if value is None else value
    try:
        return read_json(value) if value.strip() else {}
    except ValueError:
        return value
