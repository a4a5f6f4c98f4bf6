from evolution.loop.failure_text import build_failure_text
from evolution.models import FailureCase


def make(**fields: object) -> FailureCase:
    request = {"danmaku": [{"user": "a", "text": "多少钱"}]}
    return FailureCase(**{"request": request, "title": "多少钱", **fields})


def test_findings_stand_in_for_reasons_that_quote_the_reply() -> None:
    findings = [{"kind": "missing_fact", "text": "券后价"}, {"kind": "missing_fact", "text": "卖点"}]
    trajectory = {"skills_loaded": ["item_qa"], "tool_calls": [{"name": "load_skill"}, {"name": "get_stock"}]}
    case = make(findings=findings, symptom="回复「89元」没有说到券后价", trajectory=trajectory)
    assert build_failure_text(case) == "missing fact\n券后价；卖点\n多少钱\nitem qa, get stock"


def test_without_findings_the_symptom_is_taken() -> None:
    assert build_failure_text(make(symptom="太长", reply="89元")) == "太长\n多少钱\n89元"


def test_without_findings_the_conduct_tells_cases_apart() -> None:
    calls = [{"name": "get_stock"}, {"name": "book_it", "error": "error: too few"}, {"name": "book_it"}]
    assert build_failure_text(make(trajectory={"tool_calls": calls})).endswith(
        "get stock, book it; error: too few"
    )
    said = [{"role": "assistant", "content": "x"}] * 2
    assert build_failure_text(make(trajectory={"messages": said}, reply="再见")).endswith("no tool call")
    assert build_failure_text(make(reply="89元")).endswith("89元")


def test_long_parts_are_clipped() -> None:
    assert len(build_failure_text(make(symptom="长" * 5000, reply="长" * 5000))) < 1000
