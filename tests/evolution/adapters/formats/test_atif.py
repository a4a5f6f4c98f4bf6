import json
from typing import Any

import pytest

from evolution.adapters.formats import atif
from evolution.adapters.formats.items import Item, Where
from evolution.ports import Record, Rejected
from tests.evolution.intake import DATA, needs_data

WHERE = Where("run.json", "run")


def read(value: Any) -> list[Record | Rejected]:
    return list(atif.read(iter([Item(1, value)]), WHERE))


def read_file(name: str) -> list[Record]:
    records = read(json.loads((DATA / "atif" / name).read_text()))
    return [record for record in records if isinstance(record, Record)]


def trajectory(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.6",
        "session_id": "s",
        "agent": {"name": "a"},
        "steps": list(steps),
        **fields,
    }


@needs_data
def test_calls_get_their_results_and_thinking_is_kept_apart() -> None:
    (record,) = read_file("multi_tool_trajectory.json")
    calls = record.trajectory["tool_calls"]
    assert [(call["turn"], call["name"]) for call in calls] == [
        (1, "financial_search"), (1, "financial_search"), (1, "news_search"), (2, "analyst_estimates"),
    ]  # fmt: skip
    assert "MSFT" in calls[1]["result"]
    made = record.trajectory["calls"][0]
    assert (made["prompt_tokens"], made["completion_tokens"], made["cached_tokens"]) == (1850, 145, 512)
    assert made["reasoning"].startswith("The user wants two things")
    assert all(
        "wants two things" not in (message["content"] or "") for message in record.trajectory["messages"]
    )


@needs_data
def test_images_become_references() -> None:
    (record,) = read_file("multimodal_trajectory.json")
    address = (
        "https://upload.wikimedia.org/wikipedia/commons/thumb/4/47/PNG_transparency_demonstration_1.png/"
    )
    asked = record.request["danmaku"][0]["text"]
    assert asked.startswith(f"What is in this image?\n[image: {address}")
    assert "800px-Tsunami_by_hokusai_19th_century.jpg]" in record.trajectory["tool_calls"][0]["result"]


@needs_data
def test_trajectories_of_sub_agents_are_records_of_their_own() -> None:
    parent, child = read_file("subagent_trajectories.json")
    assert (parent.source_id, child.source_id) == ("sess-parent-001", "sess-child-summary-001")
    assert (parent.context["agent"], child.context["agent"]) == ("orchestrator", "summarizer")


@needs_data
def test_several_system_messages_stay_where_they_are() -> None:
    (record,) = read_file("harbor_openhands.json")
    roles = [message["role"] for message in record.trajectory["messages"]]
    assert roles == ["system", "user", "system", "system", "assistant", "tool", "assistant"]
    assert [tool["function"]["name"] for tool in record.context["tools"]][:2] == ["execute_bash", "think"]
    assert record.reply == "All done! What's next on the agenda?"


def test_trajectories_of_one_session_have_ids_of_their_own() -> None:
    said = {"source": "user", "message": "hi"}
    inner = trajectory(said, agent={"name": "b"})
    first, second = read(trajectory(said, subagent_trajectories=[inner]))
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert (first.source_id, second.source_id) == ("s", "s/b")


def test_an_answer_of_the_surroundings_belongs_to_the_step_before() -> None:
    steps: list[dict[str, Any]] = [
        {"source": "user", "message": "list"},
        {"source": "agent", "message": "", "tool_calls": [{"function_name": "sh", "arguments": {"c": "ls"}}]},
        {"source": "system", "message": "", "observation": {"results": [{"content": "a.txt"}]}},
    ]
    (record,) = read(trajectory(*steps))
    assert isinstance(record, Record)
    assert record.trajectory["tool_calls"][0]["result"] == "a.txt"


def test_a_trajectory_without_steps_costs_no_other() -> None:
    rejected, fine = read({"a": trajectory(), "b": trajectory({"source": "user", "message": "hi"})})
    assert isinstance(rejected, Rejected)
    assert isinstance(fine, Record)


@pytest.mark.parametrize(
    "value", [{}, [], {"steps": []}, {"a": {"steps": []}}, {"schema_version": "ATIF-v1.4"}]
)
def test_other_values_are_no_trajectories(value: object) -> None:
    assert not atif.fits(value)
