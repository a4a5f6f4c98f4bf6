from typing import Any

import pytest

from evolution.loop.authors import author_of
from evolution.loop.repositories import open_repository
from evolution.loop.risk import Risk, find_measured_base, find_risk, find_touched
from evolution.models import CaseResult, DatasetCase, DatasetVersion, Evaluation, Harness, Proposal
from evolution.states import EvaluationState
from tests.evolution.measured import AGENT, DEV, make_case, make_harness, make_proposal, make_version

SKILL = "skills/price/SKILL.md"
SKILL_TEXT = b"---\nname: price\ndescription: prices\nmetadata:\n  kind: reply\n---\n- look\n"
TOOL = "tools/get_price.yaml"
TOOL_TEXT = (
    b"name: get_price\ndescription: d\nparameters: {type: object, properties: {}}\nsource: {kind: fixture}\n"
)
HOOK = "hooks/h.yaml"


def hook(event: str, when: str = "") -> bytes:
    condition = f"when: {when}\n" if when else ""
    return f"name: h\nevent: {event}\n{condition}check: {{regex: x}}\non_fail: {{action: warn}}\n".encode()


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "result": {}, "error": None}


RUNS: dict[str, dict[str, Any]] = {
    "loads": {"skills_loaded": ["price"], "tool_calls": []},
    "calls": {"skills_loaded": [], "tool_calls": [call("get_price", link=1)]},
    "calls_other": {"skills_loaded": [], "tool_calls": [call("get_stock", link=2)]},
    "nothing": {"skills_loaded": [], "tool_calls": [], "reply": "hello"},
    "fails": {"skills_loaded": ["price"], "tool_calls": [call("get_price", link=1)]},
    "unsteady": {"skills_loaded": ["price"], "tool_calls": []},
}
PASSING = ["calls", "calls_other", "loads", "nothing"]


@pytest.fixture
def measured(db: None) -> Harness:
    """A harness of which the runs above are known; one fails, and one in its second repeat."""
    harness = make_harness()
    make_results(harness, open_repository(harness).resolve("main"))
    return harness


def make_results(harness: Harness, commit: str, **fields: Any) -> Evaluation:
    known = DatasetVersion.objects.filter(dataset__harness=harness).first()
    version = known or make_version(harness, [*map(make_case, RUNS), make_case("g", split="guard")])
    fields = {"state": EvaluationState.FINISHED, "total": 8, **fields}
    evaluation = Evaluation.objects.create(harness=harness, dataset_version=version, commit=commit, **fields)
    cases = {case.key: case for case in DatasetCase.objects.filter(version=version)}
    rows = [(key, 0, int(key != "fails")) for key in RUNS] + [("unsteady", 1, 0), ("g", 0, 1)]
    for key, repeat, right in rows:
        CaseResult.objects.create(
            evaluation=evaluation,
            case=cases[key],
            repeat=repeat,
            accuracy=right,
            effectiveness=right,
            trajectory=RUNS.get(key, RUNS["loads"]),
        )
    return evaluation


def risk(harness: Harness, base: dict[str, bytes], head: dict[str, bytes]) -> Risk:
    proposal = Proposal(harness=harness, base_commit=open_repository(harness).resolve("main"))
    return find_risk(proposal, find_touched({**AGENT, **base}, {**AGENT, **head}))


def test_a_changed_skill_reaches_the_passing_dev_cases_that_loaded_it(measured: Harness) -> None:
    found = risk(measured, {SKILL: SKILL_TEXT}, {SKILL: SKILL_TEXT + b"- ask\n"})

    assert found.keys == ["loads"]
    assert found.reach == [{"part": "skill", "name": "price", "cases": 1}]


def test_a_file_beside_a_skill_belongs_to_it(measured: Harness) -> None:
    assert risk(
        measured, {SKILL: SKILL_TEXT}, {SKILL: SKILL_TEXT, "skills/price/more.md": b"- x\n"}
    ).keys == ["loads"]


def test_a_changed_tool_reaches_the_cases_that_called_it(measured: Harness) -> None:
    assert risk(measured, {TOOL: TOOL_TEXT}, {}).keys == ["calls"]


def test_a_prompt_and_the_configuration_reach_everybody_and_a_readme_nobody(measured: Harness) -> None:
    assert risk(measured, {}, {"prompts/role.md": b"other"}).keys == PASSING
    assert (
        risk(measured, {}, {"harness.yaml": AGENT["harness.yaml"] + b"limits: {turns: 2}\n"}).keys == PASSING
    )
    assert risk(measured, {}, {"README.md": b"about"}).keys == []


@pytest.mark.parametrize(
    ("event", "when", "reached"),
    [
        ("reply", "", PASSING),
        ("input", "", PASSING),
        ("tool_call", "", ["calls", "calls_other"]),
        ("tool_result", "", ["calls", "calls_other"]),
        ("tool_call", "tool.name == 'get_price'", ["calls"]),
        ("tool_call", "tool.arguments.link == 2", ["calls_other"]),
        ("reply", "reply.startsWith('hello')", ["nothing"]),
        ("reply", "'price' in skills_loaded", ["loads"]),
        ("input", "danmaku.exists(item, item.text == 'loads')", ["loads"]),
        ("reply", "{kind: requires_skill, skills: [price]}", ["loads"]),
        # What a stored run does not tell counts as met.
        ("reply", "prompt.contains('x')", PASSING),
        # And what cannot be evaluated.
        ("reply", "reply.nothing.at.all == 1", PASSING),
    ],
)
def test_a_hook_reaches_the_cases_in_which_its_event_and_condition_are_met(
    measured: Harness, event: str, when: str, reached: list[str]
) -> None:
    quoted = when if when.startswith("{") else f'"{when}"' if when else ""
    assert risk(measured, {SKILL: SKILL_TEXT}, {SKILL: SKILL_TEXT, HOOK: hook(event, quoted)}).keys == reached


def test_a_hook_that_is_taken_away_reaches_those_that_it_was_for(measured: Harness) -> None:
    assert risk(measured, {HOOK: hook("tool_call")}, {}).keys == ["calls", "calls_other"]


def test_a_hook_that_cannot_be_read_may_be_for_everybody(measured: Harness) -> None:
    assert risk(measured, {}, {HOOK: b"name: ["}).keys == PASSING


def test_what_every_case_is_shown_otherwise_is_told(measured: Harness) -> None:
    base = {**AGENT, SKILL: SKILL_TEXT}

    touched = find_touched(base, {**AGENT, SKILL: SKILL_TEXT.replace(b"prices", b"costs"), TOOL: TOOL_TEXT})

    assert touched.shown_everywhere == ("get_price", "price")
    assert find_touched(base, {**AGENT, SKILL: SKILL_TEXT + b"- more\n"}).shown_everywhere == ()


def test_without_a_measured_base_nothing_is_known(db: None) -> None:
    assert risk(make_harness(), {}, {"prompts/role.md": b"other"}) == Risk()


def test_a_finished_evaluation_of_the_base_counts_before_a_newer_one_with_errors(measured: Harness) -> None:
    proposal = Proposal(harness=measured, base_commit=open_repository(measured).resolve("main"))
    finished = find_measured_base(proposal)
    make_results(measured, proposal.base_commit, state=EvaluationState.PARTIAL)
    make_results(measured, proposal.base_commit, faults=[{"kind": "timeout"}])

    assert find_measured_base(proposal) == finished


def test_an_evaluation_of_the_same_files_under_another_commit_will_do(db: None) -> None:
    harness = make_harness()
    repository = open_repository(harness)
    measured_commit = repository.resolve("main")
    evaluation = make_results(harness, measured_commit)
    there = make_proposal(harness, b"other\n")
    back = repository.commit(
        there.branch,
        {"prompts/role.md": repository.read_file(measured_commit, "prompts/role.md")},
        parent=there.head_commit,
        author=author_of(DEV),
        message="and back",
        expected_head=there.head_commit,
    )

    assert find_measured_base(Proposal(harness=harness, base_commit=back)) == evaluation
    assert find_measured_base(Proposal(harness=harness, base_commit=there.head_commit)) is None
