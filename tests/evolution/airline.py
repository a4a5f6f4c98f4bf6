"""A harness made of a real benchmark's material: the airline policy and the tool schemas of tau-bench; its records."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.evolution.intake import DATA, TAU_BENCH

NAME = "airline"
HARNESS = """\
format: 1
name: airline
kind: agent
prompt:
  - {name: policy, file: prompts/policy.md}
  - {name: request, file: prompts/request.md, role: user}
reply_skill_required: false
"""
REQUEST = """\
{% for item in history %}
{{ item.role }}: {{ item.content }}
{% endfor %}
{% for item in danmaku %}
{{ item.user }}: {{ item.text }}
{% endfor %}
"""


@dataclass(frozen=True)
class RawRecord:
    """A record as the file has it, read without any code of ours."""

    # each turn but the first begins with a message of the agent's; the prompt is left out
    turns: list[list[dict[str, Any]]]
    # what the user was told to want, and the digest of what the data has to be in the end, if there is one
    instruction: str
    digest: str

    def says(self, quote: str, turn: int) -> bool:
        """Whether the passage stands in a message of the turn, white space aside."""
        if turn >= len(self.turns):
            return False
        return any(" ".join(quote.split()) in text for text in _texts(self.turns[turn]))


def airline_files() -> dict[str, bytes]:
    """The policy as a prompt section, as it is, and the tools, which answer from a case's fixtures."""
    schemas = json.loads((DATA / "tau_bench" / "airline_tools_openai_schema.json").read_text("utf-8"))
    return {
        "harness.yaml": HARNESS.encode(),
        "prompts/policy.md": (DATA / "tau_bench" / "airline_policy.md").read_bytes(),
        "prompts/request.md": REQUEST.encode(),
        **{f"tools/{each['function']['name']}.yaml": _tool(each["function"]) for each in schemas},
    }


def write_airline(folder: Path) -> Path:
    """Put the harness into a folder, and return it."""
    for path, data in airline_files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def find_record(source_id: str) -> RawRecord:
    """The record of a failure's id: gpt-4o-airline.json/task-3/trial-1."""
    task, trial = (int(part.rsplit("-", 1)[1]) for part in source_id.split("/")[-2:])
    return _records()[task, trial]


@cache
def _records() -> dict[tuple[int, int], RawRecord]:
    records = json.loads(TAU_BENCH.read_text("utf-8"))
    return {(each["task_id"], each["trial"]): _read(each) for each in records}


def _read(record: dict[str, Any]) -> RawRecord:
    turns: list[list[dict[str, Any]]] = [[]]
    for message in record["traj"]:
        if message["role"] == "assistant":
            turns.append([])
        if message["role"] != "system":
            turns[-1].append(message)
    checks = (record["info"]["reward_info"] or {}).get("info") or {}
    return RawRecord(turns, record["info"]["task"]["instruction"], checks.get("gt_data_hash", ""))


def _tool(schema: dict[str, Any]) -> bytes:
    return yaml.safe_dump({**schema, "source": {"kind": "fixture"}}, sort_keys=False).encode()


def _texts(value: Any) -> list[str]:
    """All texts in a value, in one line each."""
    if isinstance(value, str):
        return [" ".join(value.split())]
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for entry in entries for text in _texts(entry)]
