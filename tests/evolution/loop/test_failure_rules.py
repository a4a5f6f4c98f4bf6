from typing import Any

import pytest

from evolution.errors import LoopError
from evolution.loop.failure_rules import FILES, PUSHED, FailureRule, from_json, lowest_score, parse_rule
from evolution.ports import Check, Feedback, Record


def make(**fields: Any) -> Record:
    return Record(source="test", source_id="1", line=1, **{"failed": None, **fields})


@pytest.mark.parametrize(
    ("fields", "failed", "reasons"),
    [
        ({"failed": True}, True, ()),
        ({"failed": False, "scores": {"reward": 0}, "errors": ("boom",)}, False, ()),
        ({"scores": {"reward": 0.5}}, True, ("reward 0.5",)),
        ({"scores": {"reward": 1}}, False, ()),
        ({"scores": {"a": True, "b": False}}, True, ("b 0",)),
        ({"scores": {"verdict": "pass"}}, False, ()),
        ({"scores": {"verdict": "I"}}, True, ("verdict 0",)),
        ({"scores": {"Toxicity": 0, "cost": 0.01}}, False, ()),
        ({"scores": {"hallucination": 0.9}}, True, ("hallucination 0.9",)),
        ({"scores": {"note": "well written"}}, True, ()),
        ({"scores": {"x": 10**400}}, True, ()),
        ({"symptom": "wrong price"}, True, ()),
        ({"errors": ("time\nout",), "scores": {"reward": 1}}, True, ("error: time out",)),
        (
            {"checks": (Check("polite", passed=True), Check("price", passed=False, reason="89"))},
            True,
            ("check price: 89",),
        ),
        ({"checks": (Check("polite", passed=True),)}, False, ()),
        ({"feedback": (Feedback("thumbs", "down", "too slow"),)}, True, ("feedback thumbs down: too slow",)),
        ({"feedback": (Feedback("user", 0),)}, True, ("feedback user 0",)),
        ({"feedback": (Feedback("user", -1.0),)}, True, ("feedback user -1",)),
        ({"feedback": (Feedback("用户", "差评"),)}, True, ("feedback 用户 差评",)),
        ({"feedback": (Feedback("user", 4), Feedback("liked", value=True))}, False, ()),
        ({"has_status": True}, False, ()),
        ({}, True, ()),
    ],
)
def test_the_rule_for_files(fields: dict[str, Any], failed: object, reasons: tuple[str, ...]) -> None:
    judged = FILES.judge(make(**fields))
    assert (judged.failed, judged.reasons) == (failed, reasons)


def test_a_pushed_trace_that_says_nothing_is_no_failure() -> None:
    assert not PUSHED.judge(make()).failed
    assert PUSHED.judge(make()).is_unscored


@pytest.mark.parametrize(
    ("rule", "scores", "failed"),
    [
        ("reward<0.5", {"reward": 0.4}, True),
        ("reward<0.5", {"reward": 0.5}, False),
        ("reward<=0.5", {"reward": 0.5}, True),
        ("reward<0.5", {"other": 0}, False),
        ("reward<0.5,*<1", {"reward": 0.7, "other": 0.9}, True),
        ("*<1,!latency", {"latency": 0.1}, False),
        ("toxicity>0.2", {"toxicity": 0.3}, True),
        ("toxicity >= 0.3", {"toxicity": 0.3}, True),
        ("errors", {"reward": 0}, False),
        ("用户 评分<3", {"用户 评分": 2}, True),
    ],
)
def test_a_rule_that_people_write_is_all_that_counts(
    rule: str, scores: dict[str, Any], failed: object
) -> None:
    assert parse_rule(rule).judge(make(scores=scores, symptom="x")).failed is failed


@pytest.mark.parametrize("text", ["", " , ", "nonsense", "a<b", "<1", "reward<nan", "!", "reward<1e999"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(LoopError):
        parse_rule(text)


@pytest.mark.parametrize(
    "rule",
    [FILES, PUSHED, parse_rule("a<0.5,b>=2,!c,checks"), parse_rule("a<0.83333333,tokens>12345678,b<1e-9")],
)
def test_a_rule_survives_text_and_json(rule: FailureRule) -> None:
    assert parse_rule(str(rule)) == rule
    assert from_json(rule.to_json()) == rule


def test_another_limit_gives_the_same_reasons() -> None:
    record = make(scores={"reward": 0.2})
    assert parse_rule("reward<0.5").judge(record).reasons == parse_rule("reward<0.9").judge(record).reasons


@pytest.mark.parametrize(
    "value", [{"thresholds": [{"name": 1, "sign": "?"}]}, {"thresholds": 5}, {"thresholds": ["x"]}]
)
def test_a_rule_that_cannot_be_read_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(LoopError):
        from_json(value)


def test_the_lowest_score_is_a_number() -> None:
    assert lowest_score({"a": 0.5, "b": "n/a", "c": True}) == 0.5
    assert lowest_score({"b": "n/a", "c": None}) is None
