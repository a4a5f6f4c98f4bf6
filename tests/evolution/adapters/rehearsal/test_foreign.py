"""Failures of another agent: nothing in this harness is to blame, and nothing is drafted."""

import json
from pathlib import Path

import pytest

from evolution.adapters.formats.tau_bench import read_item
from evolution.prompts.diagnosis import CaseBrief
from tests.evolution.adapters.rehearsal.test_proposing import brief, diagnose, draft

DATA = Path(__file__).resolve().parents[5] / "shared" / "data" / "tau_bench" / "gpt-4o-airline.json"
SYMPTOM = "reward 0: the data after the conversation is not what the task asks for"


def foreign(number: int, *tools: str) -> CaseBrief:
    calls = [{"turn": 1, "name": tool, "arguments": {}, "result": {}} for tool in tools]
    return CaseBrief(
        id=str(number),
        request={"messages": [{"role": "user", "content": "Please cancel my flight to Newark."}]},
        trajectory={"tool_calls": calls, "calls": [{"turn": 2}]},
        reply="I have cancelled it.",
        symptom=SYMPTOM,
    )


async def test_calls_of_tools_that_the_harness_does_not_have_are_another_agents() -> None:
    found = await diagnose([foreign(n, "cancel_reservation", "get_user_details") for n in range(3)])
    assert (found.part, found.path, found.changes) == ("knowledge", "", [])
    assert "`cancel_reservation`" in found.hypothesis
    assert found.confidence < 0.3
    assert found.cluster_name == "别的智能体的案例：cancel reservation, get user details"


async def test_a_conversation_without_tools_and_skills_is_another_agents_too() -> None:
    found = await diagnose([foreign(n) for n in range(3)])
    assert (found.part, found.changes) == ("knowledge", [])
    assert SYMPTOM not in found.hypothesis


async def test_such_a_diagnosis_leaves_nothing_to_draft() -> None:
    output, _ = await draft(await diagnose([foreign(n, "book_reservation") for n in range(3)]))
    assert output.edits == []
    assert output.title == "没有要改的"


async def test_a_case_that_loaded_a_skill_of_the_harness_is_its_own() -> None:
    case = brief(1, "改地址", skills=["item-qa"]).model_copy(update={"symptom": SYMPTOM})
    found = await diagnose([case])
    assert found.part == "prompt"
    assert "reward" not in found.changes[0]


@pytest.mark.skipif(not DATA.is_file(), reason="the tau-bench records are not beside this checkout")
async def test_real_failures_of_an_airlines_agent_leave_no_trace_in_the_harness() -> None:
    read = [read_item(item, "x", n) for n, item in enumerate(json.loads(DATA.read_text()))]
    cases = [
        CaseBrief(id=str(n), request=r.request, trajectory=r.trajectory, reply=r.reply, symptom=r.symptom)
        for n, r in enumerate(read)
        if r.scores["reward"] < 1
    ]
    for start in range(0, len(cases), 12):
        found = await diagnose(cases[start : start + 12])
        assert (found.part, found.changes) == ("knowledge", [])
