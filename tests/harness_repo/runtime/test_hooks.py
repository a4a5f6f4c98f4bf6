from collections.abc import Mapping
from dataclasses import replace

import pytest

from harness_repo.format.harness import Harness, read_harness
from harness_repo.format.hooks import Action, Hook, OnFail, Substitution
from harness_repo.runtime.hooks import NOT_EVALUATED, HookFiring, run_hooks
from harness_repo.runtime.reply import extract_reply, parse_json_reply
from tests.harness_repo.build import FILES

PLAIN = replace(read_harness(FILES), hooks=[], reply_skill_required=False)
WARN = OnFail("warn", "m")


def fire(
    check: Mapping[str, object], payload: Mapping[str, object], when: str | None = None
) -> list[HookFiring]:
    hook = Hook("h", "reply", when, dict(check), WARN)
    return run_hooks(replace(PLAIN, hooks=[hook]), "reply", {"reply": "x", **payload})[1:]


def outcome(check: Mapping[str, object], **payload: object) -> str:
    return fire(check, payload)[0].outcome


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        ({"kind": "max_length", "characters": 3}, "三个字", "四个字了"),
        ({"kind": "forbid", "patterns": ["微信", r"1[3-9]\d{9}"]}, "1号链接", "打13800138000"),
        ({"kind": "valid_json"}, "[1]", "[1"),
        ({"kind": "valid_json"}, "1", "NaN"),
        ({"kind": "valid_json"}, "1", "[" * 100_000),
        ({"kind": "valid_json", "schema": {"type": "object"}}, "{}", "[]"),
        ({"regex": r"^\d+元"}, "89元", "现在89元"),
        ({"schema": {"type": "string", "maxLength": 2}}, "89", "890"),
        ({"kind": "no_promise"}, "一般三天到", "保证三天到"),
        ({"kind": "no_promise", "phrases": ["闭眼入"]}, "值得入", "闭眼入"),
        ({"cel": "reply.size() < 4 && !reply.contains('b')"}, "a", "abab"),
        ({"cel": "reply.matches('^[0-9]+$')"}, "12", "1x"),
    ],
)
def test_a_check_tells_good_from_bad(check: Mapping[str, object], good: str, bad: str) -> None:
    assert [outcome(check, reply=good), outcome(check, reply=bad)] == ["pass", "warn"]


def test_a_skill_can_be_required_by_name_or_by_kind() -> None:
    by_name, by_kind = {"skills": ["item-qa", "x"]}, {"skill_kind": "strategy"}
    assert outcome({"kind": "requires_skill", **by_name}, skills_loaded=["item-qa"]) == "pass"
    assert outcome({"kind": "requires_skill", **by_kind}, skills_loaded=["item-qa"]) == "warn"
    assert outcome({"kind": "requires_skill"}, skills_loaded=["gone"]) == "warn"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("3号链接现在89元", "pass"),
        ("３号链接89.0元，原价1299", "pass"),
        ("3号链接88元", "warn"),
        ("满10减1", "warn"),
        ("没有数字", "pass"),
    ],
)
def test_every_number_needs_evidence(reply: str, expected: str) -> None:
    payload = {
        "reply": reply,
        "prompt": "当前讲解：3号链接",
        "request": {"danmaku": [{"text": "多少钱"}]},
        "tool_calls": [{"result": {"price": 89, "list": "1,299"}}, {"result": None}],
    }
    assert fire({"kind": "cites_evidence"}, payload)[0].outcome == expected


def test_a_number_that_a_viewer_says_may_be_said_again() -> None:
    request = {"danmaku": [{"text": "身高165"}], "history": [{"role": "user", "content": "体重50"}]}
    payload = {"request": request, "tool_calls": [{"result": {"a": 7}, "error": "refused: no"}]}
    replies = [fire({"kind": "cites_evidence"}, {**payload, "reply": reply})[0] for reply in ("165和50", "7")]
    assert [firing.outcome for firing in replies] == ["pass", "warn"]


def test_a_promise_that_a_tool_made_may_be_passed_on() -> None:
    payload = {"prompt": "支持无条件退货", "tool_calls": [{"result": {"warranty": "终身质保"}}]}
    said = [
        fire({"kind": "no_promise"}, {**payload, "reply": reply})[0] for reply in ("终身质保", "无条件退货")
    ]
    assert [firing.outcome for firing in said] == ["pass", "warn"]
    assert "无条件退货" in said[1].detail


@pytest.mark.parametrize(
    ("event", "payload", "schema"),
    [
        ("input", {"request": {"danmaku": [{"text": "a"}]}}, {"properties": {"danmaku": {"maxItems": 0}}}),
        ("tool_call", {"tool": {"name": "t", "arguments": {"n": 3}}}, {"properties": {"n": {"maximum": 2}}}),
        ("tool_result", {"result": [1, 2]}, {"type": "array", "maxItems": 1}),
        ("reply", {"reply": "[1]"}, {"type": "array"}),
    ],
)
def test_a_schema_is_about_the_value_of_its_event(
    event: str, payload: Mapping[str, object], schema: dict[str, object]
) -> None:
    hook = Hook("h", event, None, {"schema": schema}, WARN)  # type: ignore[arg-type]  # tests name events as text
    assert run_hooks(replace(PLAIN, hooks=[hook]), event, payload)[-1].outcome == "warn"


def test_a_schema_reads_the_reply_as_json_where_it_has_to_be_json() -> None:
    hook = Hook("h", "reply", None, {"schema": {"required": ["a"]}}, WARN)
    harness = replace(PLAIN, hooks=[hook], reply_schema={"type": "object"})
    firings = [run_hooks(harness, "reply", {"reply": reply}) for reply in ('{"a": 1}', "{}", "no")]
    outcomes = [next(one for one in fired if one.hook == "h") for fired in firings]
    assert [firing.outcome for firing in outcomes] == ["pass", "warn", "warn"]
    assert "not JSON" in outcomes[2].detail


@pytest.mark.parametrize(
    ("when", "fired"),
    [
        ({"regex": "链接"}, True),
        ({"regex": "退货"}, False),
        ({"cel": "turn == 2"}, True),
        ({"kind": "max_length", "characters": 3}, False),
        ({"schema": {"pattern": "^3号"}}, True),
        ({"kind": "requires_skill", "skills": ["gone"]}, False),
    ],
)
def test_any_check_can_be_a_condition(when: dict[str, object], *, fired: bool) -> None:
    hook = Hook("h", "reply", when, {"cel": "false"}, WARN)
    firings = run_hooks(replace(PLAIN, hooks=[hook]), "reply", {"reply": "3号链接", "turn": 2})
    assert [firing.hook for firing in firings[1:]] == ["h"] * fired


def test_a_condition_that_takes_too_long_warns_and_says_so() -> None:
    hook = Hook("h", "reply", {"regex": r"(a|aa)+$"}, {"cel": "false"}, WARN)
    firing = run_hooks(replace(PLAIN, hooks=[hook]), "reply", {"reply": "a" * 60 + "b"})[1]
    assert (firing.outcome, firing.message) == ("warn", "the hook could not be evaluated")


def test_what_was_found_is_told_to_people() -> None:
    firing = fire({"kind": "forbid", "patterns": ["微.?信"]}, {"reply": "加微信"})[0]
    assert (firing.message, firing.record) == ("m", "m (contains '微信')")


def test_a_hook_whose_condition_is_false_does_not_fire() -> None:
    check = {"kind": "max_length", "characters": 1}
    assert fire(check, {"reply": "long", "turn": 1}, when="turn > 1") == []
    assert fire(check, {"reply": "long", "turn": 2}, when="turn > 1")[0].outcome == "warn"


@pytest.mark.parametrize(
    ("check", "detail"),
    [
        ({"cel": "nowhere == 1"}, "nothing is called 'nowhere'"),
        ({"cel": "reply + 1 == reply"}, "+ cannot be used with a text and a whole number"),
        ({"cel": "size(reply)"}, "not true or false"),
        ({"cel": "tool.name == 'x'"}, "name"),
        ({"kind": "forbid", "patterns": [r"(a|aa)+$"]}, "takes too long"),
    ],
)
def test_a_check_that_cannot_be_made_warns_and_says_why(check: Mapping[str, object], detail: str) -> None:
    firing = fire(check, {"reply": "a" * 60 + "b"})[0]
    assert (firing.outcome, firing.message) == ("warn", "the hook could not be evaluated")
    assert detail in firing.detail


def test_a_rewrite_is_seen_by_the_hooks_after_it() -> None:
    rewrite = OnFail("rewrite", substitute=(Substitution("a", "b"), Substitution("b+", "c")))
    harness = replace(
        PLAIN,
        hooks=[
            Hook("one", "reply", None, {"kind": "forbid", "patterns": ["a"]}, rewrite),
            Hook("two", "reply", None, {"cel": "reply == 'c'"}, WARN),
        ],
    )
    firings = run_hooks(harness, "reply", {"reply": "aaa"})
    assert [(firing.hook, firing.outcome) for firing in firings[1:]] == [("one", "rewrite"), ("two", "pass")]


@pytest.mark.parametrize(
    ("check", "reply"),
    [
        ({"cel": "nowhere == 1"}, "x"),
        ({"cel": "tool.name == 'x'"}, "x"),
        ({"kind": "forbid", "patterns": [r"(a|aa)+$|secret"]}, "a" * 60 + " secret"),
        ({"schema": {"pattern": r"(a|aa)+$"}}, "a" * 60 + "b"),
    ],
)
def test_a_rule_that_blocks_and_cannot_be_evaluated_blocks(check: dict[str, object], reply: str) -> None:
    hook = Hook("h", "reply", None, check, OnFail("block", "m", "fallback"))
    firing = run_hooks(replace(PLAIN, hooks=[hook]), "reply", {"reply": reply})[1]
    assert (firing.outcome, firing.message, firing.reply) == ("block", NOT_EVALUATED, "fallback")


def test_a_rule_that_retries_and_cannot_be_evaluated_warns() -> None:
    hook = Hook("h", "reply", None, {"cel": "nowhere == 1"}, OnFail("retry", "m"))
    firing = run_hooks(replace(PLAIN, hooks=[hook]), "reply", {"reply": "x"})[1]
    assert (firing.outcome, firing.message) == ("warn", NOT_EVALUATED)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**400])
def test_a_number_beyond_64_bits_does_not_switch_rules_off(number: int) -> None:
    hooks = [
        Hook("words", "reply", None, {"cel": "!reply.contains('secret')"}, OnFail("block", "m", "no")),
        Hook("size", "reply", None, {"cel": "tool_calls[0].arguments.n in [1, 2]"}, WARN),
        Hook("most", "reply", None, {"cel": "100 < tool_calls[0].arguments.n"}, WARN),
    ]
    payload = {"reply": "secret", "tool_calls": [{"arguments": {"n": number, "all": [number]}}]}
    firings = run_hooks(replace(PLAIN, hooks=hooks), "reply", payload)[1:]
    assert [firing.outcome for firing in firings] == ["block", "warn", "pass" if number > 0 else "warn"]
    assert NOT_EVALUATED not in [firing.message for firing in firings]


@pytest.mark.parametrize("action", ["retry", "block", "warn"])
def test_what_a_rewrite_brings_in_is_checked_by_the_rules_before_it(action: Action) -> None:
    hooks = [
        Hook("promise", "reply", None, {"kind": "no_promise"}, OnFail(action, "m")),
        Hook(
            "rewrite",
            "reply",
            None,
            {"kind": "forbid", "patterns": ["退款"]},
            OnFail("rewrite", "", "保证退钱"),
        ),
        Hook("after", "reply", None, {"cel": "reply == '保证退钱'"}, WARN),
    ]
    firings = run_hooks(replace(PLAIN, hooks=hooks), "reply", {"reply": "可以退款"})[1:]
    said = [(firing.hook, firing.outcome) for firing in firings]
    assert said == [("promise", "pass"), ("rewrite", "rewrite"), ("after", "pass"), ("promise", action)]


def test_rewrites_that_undo_one_another_end() -> None:
    hooks = [
        Hook("one", "reply", None, {"cel": "reply == 'b'"}, OnFail("rewrite", "", "b")),
        Hook("two", "reply", None, {"cel": "reply == 'a'"}, OnFail("rewrite", "", "a")),
    ]
    firings = run_hooks(replace(PLAIN, hooks=hooks), "reply", {"reply": "x"})
    assert [firing.reply for firing in firings[1:]] == ["b", "a"]


def test_a_rewrite_to_nothing_is_an_empty_reply() -> None:
    rewrite = OnFail("rewrite", substitute=(Substitution(".*", ""),))
    hook = Hook("h", "reply", None, {"kind": "forbid", "patterns": ["bad"]}, rewrite)
    firings = run_hooks(replace(PLAIN, hooks=[hook]), "reply", {"reply": "bad"})
    assert [(firing.hook, firing.outcome) for firing in firings][-1] == ("reply_not_empty", "retry")


def test_the_message_can_carry_what_was_found() -> None:
    hook = Hook(
        "h", "reply", None, {"kind": "max_length", "characters": 1}, OnFail("retry", "too long: {detail}")
    )
    firing = run_hooks(replace(PLAIN, hooks=[hook]), "reply", {"reply": "xx"})[1]
    assert firing.message == firing.record == "too long: 2 characters, at most 1"


def test_only_the_hooks_of_the_event_run() -> None:
    def names(harness: Harness, event: str) -> list[str]:
        return [firing.hook for firing in run_hooks(harness, event, {"reply": "x"})]

    harness = read_harness(FILES)
    assert names(harness, "reply") == ["reply_not_empty", "reply_skill_required", "short"]
    assert names(harness, "input") == []


@pytest.mark.parametrize(
    ("content", "as_json", "reply"),
    [
        (" hi \n", False, "hi"),
        (None, False, ""),
        ("<think>one\ntwo</think>\n\nhi", False, "hi"),
        ("```json\n{}\n```", True, "{}"),
        ("```json\n{}\n```", False, "```json\n{}\n```"),
    ],
)
def test_the_reply_is_taken_out_of_what_the_model_wrote(
    content: str | None, reply: str, *, as_json: bool
) -> None:
    assert extract_reply(content, as_json=as_json) == reply


def test_a_json_reply_is_read_with_or_without_its_fence() -> None:
    assert parse_json_reply('```\n{"a": 1}\n```') == parse_json_reply('{"a": 1}') == {"a": 1}
    with pytest.raises(ValueError, match="Expecting"):
        parse_json_reply(None)
