"""Diagnoser and editor on a harness of another language and domain: an airline's policy and real failures on it."""

import json
from pathlib import Path

import pytest

from evolution.adapters.formats.tau_bench import read_item
from evolution.adapters.rehearsal import RehearsalModel
from evolution.adapters.rehearsal.text import HAN
from evolution.loop.quotes import quotes_verbatim
from evolution.prompts.diagnosis import CaseBrief, DiagnosisBrief, DiagnosisOutput, diagnosis_request
from evolution.prompts.draft import DraftOutput, draft_request
from evolution.prompts.file_edits import apply_edits
from evolution.prompts.structured import ask
from harness_repo.format.harness import read_harness

DATA = Path(__file__).resolve().parents[5] / "shared" / "data" / "tau_bench"
CONFIG = """\
format: 1
name: airline
kind: agent
prompt:
  - {name: policy, file: prompts/policy.md}
  - {name: skills, file: prompts/skills.md}
"""
SKILLS = "## Skills\n{% for skill in skills %}\n- {{ skill.name }}: {{ skill.description }}\n{% endfor %}\n"
SKILL = """\
---
name: cancel-flight
description: Use it when the user wants to cancel a reservation.
metadata: {kind: reply}
---
1. Read the reservation, and check that it may be cancelled.
"""
MODEL = RehearsalModel()

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the tau-bench records are not beside this checkout"
)


def airline_files() -> dict[str, str]:
    policy = (DATA / "airline_policy.md").read_text()
    return {
        "harness.yaml": CONFIG,
        "prompts/policy.md": policy,
        "prompts/skills.md": SKILLS,
        "skills/cancel-flight/SKILL.md": SKILL,
    }


def failures(tool: str, count: int = 6) -> list[CaseBrief]:
    """The first failed conversations in which the tool was called."""
    records = json.loads((DATA / "gpt-4o-airline.json").read_text())
    read = [read_item(item, "gpt-4o-airline.json", n) for n, item in enumerate(records)]
    failed = [
        CaseBrief(
            id=str(n),
            request=record.request,
            trajectory=record.trajectory,
            reply=record.reply,
            symptom=record.symptom,
        )
        for n, record in enumerate(read)
        if record.scores["reward"] < 1 and f'"name": "{tool}"' in json.dumps(record.trajectory)
    ]
    return failed[:count]


async def diagnose(cases: list[CaseBrief]) -> DiagnosisBrief:
    request = diagnosis_request(cases, airline_files(), model="rehearsal-diagnoser")
    return (await ask(MODEL, request, DiagnosisOutput))[0].briefs()[0]


@pytest.mark.parametrize("tool", ["cancel_reservation", "book_reservation", "transfer_to_human_agents"])
async def test_a_failure_without_findings_is_diagnosed_in_english_from_the_tool_calls(tool: str) -> None:
    found = await diagnose(failures(tool))
    assert not HAN.search(found.model_dump_json())
    assert (found.part, found.path) == ("prompt", "prompts/policy.md")
    assert found.confidence < 0.6
    assert all(item.turn > 1 for item in found.first_wrong_turns)
    assert found.first_wrong_turns


async def test_the_name_says_which_action_went_wrong() -> None:
    found = await diagnose(failures("cancel_reservation"))
    assert found.cluster_name == "cancel_reservation: data changed without checking the conditions"
    assert '"Cancel flight"' in found.hypothesis


async def test_its_quotes_stand_in_the_cases() -> None:
    cases = failures("update_reservation_flights", 12)
    found = await diagnose(cases)
    assert found.evidence
    for item in found.evidence:
        assert quotes_verbatim(next(case for case in cases if case.id == item.case), item.quote)


async def test_its_draft_adds_an_english_rule_that_the_harness_reads() -> None:
    files = airline_files()
    diagnosis = await diagnose(failures("cancel_reservation"))
    request = draft_request(diagnosis, files, model="rehearsal-editor")
    output = (await ask(MODEL, request, DraftOutput))[0]
    before = {path: text.encode() for path, text in files.items()}
    after = {**before, **apply_edits(before, output.edits)}
    harness = read_harness({path: data for path, data in after.items() if data is not None})
    assert [str(problem) for problem in harness.problems] == []
    assert "## Rules\n- Before calling `cancel_reservation`" in harness.prompt[0].template
    assert not HAN.search(output.model_dump_json())


async def test_a_conversation_on_the_harness_subject_without_a_call_was_left_undone() -> None:
    request = {
        "messages": [{"role": "user", "content": "I want to change the passenger of my flight reservation."}]
    }
    reply = (
        "Please provide your user id and the reservation number, so that I can assist you with the changes."
    )
    case = CaseBrief(
        id="1", request=request, reply=reply, trajectory={"calls": [{"turn": 1}]}, symptom="reward 0"
    )
    found = await diagnose([case])
    assert (found.part, found.category) == ("prompt", "incomplete_task")
