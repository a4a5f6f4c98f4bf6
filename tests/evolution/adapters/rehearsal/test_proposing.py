"""Diagnoser and editor: from failure cases to edits that a harness reads without problems."""

import json
from typing import Any

from evolution.adapters.rehearsal import RehearsalModel
from evolution.adapters.rehearsal.diagnoser import _without_repeats
from evolution.adapters.rehearsal.plans import LONG_LIST
from evolution.adapters.rehearsal.wording import say
from evolution.prompts.diagnosis import CaseBrief, DiagnosisBrief, DiagnosisOutput, diagnosis_request
from evolution.prompts.draft import DraftOutput, Earlier, draft_request
from evolution.prompts.file_edits import apply_edits
from evolution.prompts.structured import ask
from harness_repo.format.harness import Harness, read_harness
from harness_repo.starters import starter_files

MODEL = RehearsalModel()


def starter_texts(**changed: str) -> dict[str, str]:
    files = {path: data.decode() for path, data in starter_files("live_commerce").items()}
    return {**files, **changed}


def brief(number: int, danmaku: str, *findings: tuple[str, str], reply: str = "", **parts: Any) -> CaseBrief:
    calls = [
        {"turn": 1, "name": tool, "arguments": {}, "result": result}
        for tool, result in parts.get("calls", [])
    ]
    trajectory = {
        "skills_loaded": parts.get("skills", ["item-qa"]),
        "tool_calls": calls,
        "calls": [{"turn": 3}],
    }
    return CaseBrief(
        id=f"case-{number}",
        request={"danmaku": [{"user": "a", "text": danmaku}]},
        trajectory=trajectory,
        reply=reply or f"回复{number}哈。",
        findings=[{"kind": kind, "text": text} for kind, text in findings],
    )


async def diagnose(cases: list[CaseBrief], files: dict[str, str] | None = None) -> DiagnosisBrief:
    """The likeliest hypothesis."""
    return (await diagnose_all(cases, files))[0]


async def diagnose_all(cases: list[CaseBrief], files: dict[str, str] | None = None) -> list[DiagnosisBrief]:
    request = diagnosis_request(cases, files or starter_texts(), model="rehearsal-diagnoser")
    return (await ask(MODEL, request, DiagnosisOutput))[0].briefs()


async def draft(
    diagnosis: DiagnosisBrief, files: dict[str, str] | None = None, feedback: str | None = None
) -> tuple[DraftOutput, Harness]:
    texts = files or starter_texts()
    request = draft_request(diagnosis, texts, model="rehearsal-editor", earlier=Earlier(feedback or ""))
    output = (await ask(MODEL, request, DraftOutput))[0]
    before = {path: text.encode() for path, text in texts.items()}
    after = {**before, **apply_edits(before, output.edits)}
    harness = read_harness({path: data for path, data in after.items() if data is not None})
    assert [str(problem) for problem in harness.problems] == []
    return output, harness


def promises() -> list[CaseBrief]:
    return [
        brief(n, "几天能到", ("forbidden_claim", "明天就能到哈"), reply="发顺丰，明天就能到哈。")
        for n in range(3)
    ]


async def test_false_promises_become_a_rule_that_quotes_them() -> None:
    found = await diagnose(promises())
    assert (found.part, found.path) == ("prompt", "prompts/constraints.md")
    output, harness = await draft(found)
    assert [edit.action for edit in output.edits] == ["append_line"]
    constraints = next(section for section in harness.prompt if section.name == "constraints")
    assert "- 不要对观众说「明天就能到」。" in constraints.template


async def test_several_promises_become_a_rule_on_their_kind() -> None:
    said = ["明天就能到", "今天就发"]
    cases = [
        brief(n, "几天能到", ("forbidden_claim", text), reply=f"发顺丰，{text}哈。")
        for n, text in enumerate(said)
    ]
    output, _ = await draft(await diagnose(cases))
    assert output.edits[0].content == "- 不要对观众承诺「今天就发」、「明天就能到」这类没有依据的话。"


async def test_an_absolute_promise_without_a_number_is_forbidden_by_its_words() -> None:
    cases = [
        brief(n, "敏感肌能用吗", ("unsupported_claim", "百分百有效哈"), reply="百分百有效哈。")
        for n in range(2)
    ]
    output, _ = await draft(await diagnose(cases))
    assert output.edits[0].content == "- 不要对观众说「百分百有效」。"


async def test_a_second_cause_is_a_hypothesis_of_its_own_when_it_explains_two_cases() -> None:
    mixed = [*promises(), *(brief(n, "how much", ("wrong_language", "the reply is Chinese")) for n in (8, 9))]
    first, second = await diagnose_all(mixed)
    assert (first.category, second.category) == ("unverified_claim", "wrong_language")
    assert first.confidence > second.confidence
    assert {item.case for item in second.evidence} == {"case-8", "case-9"}
    output, harness = await draft(second)
    assert len(output.edits) == 1
    assert "用英文回复" in harness.prompt[-2].template


def test_no_hypothesis_is_surer_than_the_ones_before_it() -> None:
    found = [{"path": "a", "changes": [str(n)], "confidence": n} for n in (0.4, 0.5, 0.3)]
    assert [each["confidence"] for each in _without_repeats(found)] == [0.4, 0.4, 0.3]


async def test_a_second_cause_of_a_single_case_is_left_to_another_cluster() -> None:
    mixed = [*promises(), brief(8, "how much", ("wrong_language", "the reply is Chinese"))]
    assert len(await diagnose_all(mixed)) == 1


async def test_each_case_has_the_turn_that_went_wrong_first() -> None:
    found = await diagnose([brief(n, "还要多久补货呢", ("missing_fact", "11月12日补货")) for n in range(3)])
    # The skill is chosen in the first turn, and it was the wrong one.
    assert [(item.case, item.turn) for item in found.first_wrong_turns] == [
        (f"case-{n}", 1) for n in range(3)
    ]
    claims = await diagnose(promises())
    assert {item.turn for item in claims.first_wrong_turns} == {3}


async def test_a_fact_that_the_reply_states_blames_the_judge() -> None:
    cases = [
        brief(n, "几天能到", ("missing_fact", "48小时内发货"), reply="咱们48小时内发货哈。") for n in range(3)
    ]
    found = await diagnose(cases)
    assert (found.part, found.category, found.path, found.changes) == ("judge", "judge_error", "", [])


async def test_a_fact_that_is_forbidden_too_blames_the_label() -> None:
    findings = [("missing_fact", "明天就能到"), ("forbidden_claim", "明天就能到")]
    found = await diagnose([brief(n, "几天能到", *findings) for n in range(3)])
    assert (found.part, found.category, found.changes) == ("label", "bad_label", [])


async def test_when_no_rule_is_left_to_add_the_knowledge_is_missing() -> None:
    cases = [brief(n, "嗯嗯呢", ("missing_fact", "先甲后乙"), skills=["spec-qa"]) for n in range(2)]
    files = starter_texts()
    files["skills/spec-qa/SKILL.md"] += "- 调用 `search_faq`。\n"
    first = await diagnose(cases, files)
    assert (first.part, first.category) == ("prompt", "missing_instruction")
    rules = [say(f"{kind}.rule", chinese=True) for kind in ("model", "not_returned")]
    files["prompts/constraints.md"] += "".join(f"- {rule}\n" for rule in rules)
    found = await diagnose(cases, files)
    assert (found.part, found.category, found.changes) == ("knowledge", "missing_knowledge", [])


async def test_a_rule_that_is_there_already_is_not_added_again() -> None:
    constraints = starter_texts()["prompts/constraints.md"] + "- 观众用英文提问，就用英文回复。\n"
    files = starter_texts(**{"prompts/constraints.md": constraints})
    found = await diagnose([brief(n, "how much", ("wrong_language", "x")) for n in range(3)], files)
    assert found.changes
    assert not any("英文" in change for change in found.changes)


async def test_a_search_that_no_skill_uses_is_tried_when_nothing_else_has_the_fact() -> None:
    cases = [brief(n, "嗯嗯呢", ("missing_fact", "先甲后乙"), skills=["spec-qa"]) for n in range(2)]
    found = await diagnose(cases)
    assert found.path == "skills/spec-qa/SKILL.md"
    _, harness = await draft(found)
    assert "search_faq" in harness.skills["spec-qa"].body


async def test_manners_that_are_missing_become_lines_to_say() -> None:
    cases = [brief(n, "今天我生日", ("missing_fact", "祝生日快乐"), skills=["small-talk"]) for n in range(2)]
    _, harness = await draft(await diagnose(cases))
    assert "话术（生日）：「祝宝宝生日快乐" in harness.skills["small-talk"].body


async def test_a_long_list_of_rules_gets_a_hook_instead() -> None:
    rules = "## 约束\n" + "- 回复要口语化。\n" * LONG_LIST
    files = starter_texts(**{"prompts/constraints.md": rules})
    found = await diagnose(promises(), files)
    assert found.part == "hook"
    _, harness = await draft(found, files)
    assert any("明天就能到" in hook.check.get("patterns", []) for hook in harness.hooks)


async def test_quotes_stand_in_the_cases_verbatim() -> None:
    cases = promises()
    for item in (await diagnose(cases)).evidence:
        case = next(case for case in cases if case.id == item.case)
        assert item.quote in case.reply


async def test_a_tool_that_no_skill_names_becomes_a_new_skill() -> None:
    cases = [
        brief(n, text, ("missing_fact", "付款后1小时内可改"))
        for n, text in enumerate(["地址填错了能改地址吗", "想取消订单", "改地址来得及吗"])
    ]
    found = await diagnose(cases)
    assert found.part == "skill"
    _, harness = await draft(found)
    added = set(harness.skills) - set(read_harness(starter_files("live_commerce")).skills)
    assert len(added) == 1
    skill = harness.skills[added.pop()]
    assert skill.kind == "reply"
    assert "get_order_policy" in skill.body
    assert "time_limit" in skill.body


async def test_a_fact_that_was_returned_but_not_stated_amends_the_statement_line() -> None:
    result = {"ship_from": "嘉兴仓", "remote_areas": "新疆不发货"}
    cases = [
        brief(
            n,
            "新疆给发吗",
            ("missing_fact", "新疆不发货"),
            skills=["delivery-qa"],
            calls=[("get_delivery_info", result)],
        )
        for n in range(3)
    ]
    found = await diagnose(cases)
    assert found.path == "skills/delivery-qa/SKILL.md"
    _, harness = await draft(found)
    assert "remote_areas" in harness.skills["delivery-qa"].body
    assert "remote_areas" not in harness.skills["delivery-qa"].description


async def test_a_skill_that_was_not_chosen_gets_the_viewers_words() -> None:
    cases = [brief(n, "还要多久补货呢", ("missing_fact", "11月12日补货")) for n in range(3)]
    found = await diagnose(cases)
    assert found.path == "skills/stock-qa/SKILL.md"
    before = read_harness(starter_files("live_commerce")).skills["stock-qa"].description
    _, harness = await draft(found)
    assert harness.skills["stock-qa"].description.startswith(before)
    assert len(harness.skills["stock-qa"].description) > len(before)


async def test_the_language_gets_its_rule_once() -> None:
    cases = [brief(n, "how much", ("wrong_language", "券后价")) for n in range(3)]
    output, _ = await draft(await diagnose(cases))
    assert "英文" in output.edits[0].content


async def test_cases_without_findings_are_diagnosed_with_little_confidence() -> None:
    case = CaseBrief(
        id="9",
        request={"messages": []},
        symptom="Changed the address of an order without checking the policy.",
    )
    found = await diagnose([case])
    assert found.confidence < 0.5
    assert found.evidence[0].quote in case.symptom
    output, _ = await draft(found)
    assert "`get_order_policy`" in output.edits[0].content
    assert "without checking" not in output.edits[0].content


async def test_amended_change_sentences_in_free_words_become_a_rule() -> None:
    found = (await diagnose(promises())).model_copy(update={"changes": ["不要承诺送达日期。"]})
    output, _ = await draft(found)
    assert output.edits[0].content == "- 不要承诺送达日期。"


async def test_the_same_cases_bring_the_same_draft() -> None:
    first = (await draft(await diagnose(promises())))[0]
    second = (await draft(await diagnose(promises())))[0]
    assert json.dumps(first.model_dump()) == json.dumps(second.model_dump())
