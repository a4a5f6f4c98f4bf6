import json
import re
from typing import Any

import pytest

from evolution.loop.quotes import turn_of_quote
from evolution.loop.trimming import count_brief, trim_case, trim_cases
from evolution.prompts.diagnosis import CaseBrief

FILLER = "Lorem ipsum dolor sit amet, consectetur adipiscing elit. "


def conversation(turns: int, *, failing: int = 0, **fields: Any) -> CaseBrief:
    """A case with a call and a long result in each turn; the one of `failing` has an error."""
    calls, messages = [], []
    for turn in range(1, turns + 1):
        messages.append({"role": "user", "content": f"question {turn}"})
        messages.append({"role": "assistant", "content": f"answer {turn}. {FILLER * 4}"})
        error = {"error": "denied: not allowed"} if turn == failing else {}
        result = {"text": f"result {turn}. {FILLER * 40}", "end": f"end of {turn}"}
        calls.append(
            {"turn": turn, "name": f"get_{turn}", "arguments": {"id": turn}, "result": result, **error}
        )
    return CaseBrief(id="7", trajectory={"tool_calls": calls, "messages": messages}, **fields)


def turns_shown(brief: CaseBrief) -> set[int]:
    return {call["turn"] for call in (brief.trajectory or {})["tool_calls"]}


def test_a_case_that_fits_is_shown_whole() -> None:
    trimmed = trim_case(conversation(3), 100_000)
    assert trimmed.cuts == []
    assert f"result 2. {FILLER * 40}" in json.dumps(trimmed.brief.trajectory)


@pytest.mark.parametrize("budget", [10_000, 6_000, 2_000, 900])
def test_a_long_case_is_cut_to_its_budget(budget: int) -> None:
    trimmed = trim_case(conversation(20, failing=5), budget)
    assert trimmed.tokens == count_brief(trimmed.brief) <= budget
    assert trimmed.cuts


def test_what_went_wrong_and_the_end_stay_whole_longest() -> None:
    trimmed = trim_case(conversation(20, failing=5), 5_000)
    calls = {call["turn"]: call for call in (trimmed.brief.trajectory or {})["tool_calls"]}
    assert {5, 19, 20} <= set(calls)
    assert len(calls[5]["result"]["text"]) > 2_000
    assert 2 not in calls or len(calls[2]["result"]["text"]) < 1_000


def test_the_turn_that_is_blamed_and_the_one_that_the_judge_cites_stay() -> None:
    cited = [{"kind": "unsupported_claim", "text": "answer 12."}]
    trimmed = trim_case(conversation(20, findings=cited), 4_000, blamed=3)
    assert {3, 12, 20} <= turns_shown(trimmed.brief)


def test_turns_keep_their_numbers_and_those_left_out_are_said() -> None:
    trimmed = trim_case(conversation(20, failing=5), 3_000)
    trajectory = trimmed.brief.trajectory or {}
    assert "[turns 7-17 left out]" in trajectory["left_out"]
    assert {"case": 7, "turns": [7, 17]} in trimmed.cuts
    answer = next(row for row in trajectory["messages"] if row["turn"] == 19 and row["role"] == "assistant")
    assert answer["content"].startswith("answer 19.")
    assert turn_of_quote(conversation(20), "answer 19.", 4) == 19


def test_every_cut_says_how_much_is_missing() -> None:
    whole = conversation(8)
    trimmed = trim_case(whole, 3_500)
    cut = next(cut for cut in trimmed.cuts if cut.get("turn") == 1 and cut["part"] == "get_1 result")
    text = (trimmed.brief.trajectory or {})["tool_calls"][0]["result"]["text"]
    said = re.search(r"\[… ([\d,]+) characters cut …\]", text)
    assert said is not None
    full = (whole.trajectory or {})["tool_calls"][0]["result"]["text"]
    assert int(said[1].replace(",", "")) == len(full) - (len(text) - len(said[0]))
    assert abs(cut["characters"] - (len(full) - len(text))) < 10


def test_what_a_source_says_beyond_the_format_is_left_out_and_said() -> None:
    brief = conversation(2)
    trajectory = {
        **(brief.trajectory or {}),
        "meta": {"blob": "b" * 2_000_000},
        "tools": [FILLER],
        "usage": {"x": LONG},
    }
    trimmed = trim_case(brief.model_copy(update={"trajectory": trajectory}), 100_000)
    (cut,) = trimmed.cuts
    assert (cut["part"], cut["characters"] > 2_000_000) == ("meta, tools", True)
    assert (trimmed.brief.trajectory or {})["left_out"] == [
        f"[meta, tools: {cut['characters']:,} characters cut]"
    ]


def test_long_lists_are_cut_to_their_first_entries() -> None:
    calls = [{"turn": 1, "name": "list", "result": [{"id": n, "note": FILLER} for n in range(400)]}]
    case = CaseBrief(id="1", trajectory={"tool_calls": [*calls, {"turn": 9, "name": "x", "result": "y"}]})
    trimmed = trim_case(case, 1_500)
    assert trimmed.tokens <= 1_500
    assert "left out" in json.dumps(trimmed.brief.trajectory) or "cut" in json.dumps(trimmed.brief.trajectory)


def test_what_a_short_case_leaves_over_is_for_the_longer_ones() -> None:
    short = CaseBrief(id="1", reply="短")
    long = conversation(10)
    alone = trim_case(long, 3_000)
    together = trim_cases([long, short], 6_000, {})
    assert [each.brief.id for each in together] == ["7", "1"]
    assert alone.tokens < together[0].tokens <= 6_000


def test_a_case_without_a_trajectory_is_cut_too() -> None:
    trimmed = trim_case(CaseBrief(id="1", reply=FILLER * 500, context={"a": FILLER * 500}), 800)
    assert trimmed.tokens <= 800
    assert {cut["part"] for cut in trimmed.cuts} == {"context", "reply"}


LONG = "z" * 200_000


@pytest.mark.parametrize(
    "fields",
    [
        {"findings": [{"kind": "k", "text": LONG}]},
        {"findings": [{"kind": LONG, "text": "short"}] * 40},
        {"reasons": {"accuracy": LONG}},
        {"reasons": {f"metric {n}": FILLER for n in range(4_000)}},
        {"category": LONG},
        {"trajectory": {"hooks": [{"turn": 1, "name": "h", "outcome": "fail", "detail": LONG}]}},
        {"trajectory": {"hooks": [{"outcome": "fail", "detail": FILLER}] * 3_000}},
        {"trajectory": {"skills_loaded": [LONG], "error": LONG}},
        {"trajectory": {"tool_calls": [{"turn": 1, "name": LONG, "error": FILLER}] * 100}},
        {"trajectory": {"tool_calls": [{"turn": n, "name": "x", "error": FILLER} for n in range(3_000)]}},
    ],
)
def test_whatever_is_long_is_cut_and_said(fields: dict[str, Any]) -> None:
    trimmed = trim_case(CaseBrief(id="7", request={"x": "y"}, **fields), 2_000)
    assert trimmed.tokens == count_brief(trimmed.brief) <= 2_000
    assert trimmed.cuts
    assert CaseBrief.model_validate(trimmed.brief.model_dump()) == trimmed.brief
