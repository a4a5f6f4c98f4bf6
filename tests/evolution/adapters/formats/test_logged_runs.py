from datetime import UTC, datetime
from typing import Any

from evolution.adapters.formats.logged_runs import Step, assemble, find_commit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def step(identity: str, second: int = 0, **fields: Any) -> Step:
    return Step(id=identity, start=datetime(2025, 6, 1, 10, 0, second, tzinfo=UTC), **fields)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def agent(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def said(steps: list[Step], asked: Any = None, answered: Any = None) -> list[str | None]:
    return [message["content"] for message in assemble(steps, asked, answered).messages]


def test_the_fullest_chat_is_the_conversation() -> None:
    first = step("1", 1, kind="llm", input=[user("a")], output="b")
    second = step("2", 2, kind="llm", input=[user("a"), agent("b"), user("c")], output="d")
    assert said([second, first]) == ["a", "b", "c", "d"]


def test_a_longer_chat_about_something_else_is_not_taken_for_the_conversation() -> None:
    meant = step("1", kind="llm", input=[user("refund please")], output="done")
    other = step("2", kind="llm", input=[user("judge"), agent("x"), user("again")], output="y")
    assert said([meant, other], asked="refund please") == ["refund please", "done"]


def test_a_state_that_is_returned_whole_is_not_told_twice() -> None:
    whole = step("1", input={"messages": [user("a")]}, output={"messages": [user("a"), agent("b")]})
    assert said([whole]) == ["a", "b"]


def test_a_tool_that_failed_answers_its_call_with_the_error() -> None:
    call = {"id": "c", "function": {"name": "get_price", "arguments": "{}"}}
    model = step("1", 1, kind="llm", input=[user("a")], output={**agent(""), "tool_calls": [call]})
    tool = step("2", 2, kind="tool", name="running tool: get_price", error="HTTP 500")
    run = assemble([model, tool])
    assert run.messages[-1]["content"] == "Error: HTTP 500"
    assert run.errors == ("running tool: get_price: HTTP 500",)


def test_a_run_without_a_chat_is_what_went_in_and_came_out() -> None:
    assert said([step("1", name="f")], {"sku": 3}, "89") == ['{"sku": 3}', "89"]
    assert said([]) == []


def test_of_model_calls_that_are_logged_by_several_layers_the_innermost_counts() -> None:
    outer = step("1", 1, kind="llm", prompt_tokens=3, input=[user("a")], output="b")
    inner = step("2", 2, kind="llm", parent_id="1", prompt_tokens=3, input="user: a", output="b")
    assert [call.prompt_tokens for call in assemble([outer, inner]).calls] == [3]


def test_a_commit_is_forty_digits_and_nothing_else() -> None:
    assert find_commit("1.0.0", {"revision_id": "v0.1-dirty"}, {"git_commit": COMMIT}) == COMMIT
    assert find_commit(COMMIT[:7], None, {}) == ""
