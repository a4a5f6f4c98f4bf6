import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evolution.adapters.formats import langfuse
from evolution.adapters.formats.chats import find_chat
from evolution.adapters.formats.items import Item, Where
from evolution.adapters.formats.messages import check_messages
from evolution.ports import Feedback, Record, Rejected
from tests.evolution.intake import DATA, needs_data

FOLDER = DATA / "langfuse"
TRACES = sorted(FOLDER.glob("*.trace.json"))
WHERE = Where("export.json", "export")

# Where the chatml file has a chat that is not as its users would read it: what the program said all the same.
BETTER = {
    # Agno logs its messages as Python prints them, of which the chatml kept the tools alone.
    ("agno-2025-06-11", "ca136de468e156c9", "input"): ["system", "user"],
    ("agno-2025-06-11", "b38a82eaa62b551e", "input"): ["system", "user", "assistant", "tool"],
    # Koog writes a call as a tool's message with the call as JSON in it.
    ("koog-2025-08-26", "e44e72cf2d221781", "input"): [
        "system", "user", "assistant", "tool", "assistant", "tool",
    ],
    ("koog-2025-08-26", "042f9350c3729147", "output"): ["assistant", "assistant"],
    # Gemini's results of tools are the user's.
    ("google-adk-2025-08-28", "bded677884f031ce", "input"): ["system", "user", "assistant", "tool"],
    # The choice of an event has its message inside.
    ("pydantic-ai-2025-06-06", "5cb389a3bdd21a6e", "output"): ["assistant"],
}  # fmt: skip


def read(*values: Any) -> list[Record | Rejected]:
    return list(langfuse.read((Item(line, value) for line, value in enumerate(values, 1)), WHERE))


def only(*values: Any) -> Record:
    (record,) = read(*values)
    assert isinstance(record, Record)
    return record


def open_json(path: Path) -> Any:
    return json.loads(path.read_text())


def trace(**fields: Any) -> dict[str, Any]:
    return {"id": "t1", "projectId": "p", "timestamp": "2025-06-01T10:00:00Z", "scores": [], **fields}


def step(identity: str, kind: str = "GENERATION", **fields: Any) -> dict[str, Any]:
    started = {"traceId": "t1", "startTime": "2025-06-01T10:00:00Z", "level": "DEFAULT"}
    return {"id": identity, "type": kind, "name": identity, **started, **fields}


def chats_of(path: Path) -> Iterator[tuple[str, str, Any, list[dict[str, Any]]]]:
    """The chats of a chatml file: observation, side, what was logged, and the messages that it amounts to."""
    observations = {each["id"]: each for each in open_json(path)["observations"]}
    expected = open_json(path.with_name(path.name.replace(".trace.", ".chatml.")))
    for identity, sides in expected.items():
        for side, result in sides.items():
            data = result["data"] if result["success"] else []
            if (
                any("role" in message for message in data)
                or (path.name.split(".")[0], identity, side) in BETTER
            ):
                yield identity, side, observations[identity][side], data


def text_of(message: dict[str, Any]) -> str | None:
    content = message.get("content", message.get("json", {}).get("text"))
    if isinstance(content, list) and content and "text" in content[0]:
        return "\n".join(part["text"] for part in content)
    return content if isinstance(content, str) or content is None else json.dumps(content)


def calls_of(message: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [
        (call["id"], call["name"], json.loads(call["arguments"])) for call in message.get("tool_calls", ())
    ]


def our_calls(message: dict[str, Any]) -> list[tuple[str, str, Any]]:
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
    return [(identity, made["name"], as_value(made["arguments"])) for identity, made in calls]


def as_value(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


@needs_data
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_each_chat_of_a_trace_equals_its_chatml_turn_by_turn(path: Path) -> None:
    name = path.name.split(".")[0]
    compared = 0
    for identity, side, logged, data in chats_of(path):
        ours = check_messages(find_chat(logged, "user" if side == "input" else "assistant").messages)
        compared += 1
        if roles := BETTER.get((name, identity, side)):
            assert [message["role"] for message in ours] == roles
            continue
        assert [m["role"] for m in ours] == [m["role"].replace("model", "assistant") for m in data]
        for mine, theirs in zip(ours, data, strict=True):
            same_json = as_json(mine["content"]) == as_json(text_of(theirs))
            assert same_json or (mine["content"] or "") == (text_of(theirs) or "")
            assert our_calls(mine) == calls_of(theirs)
            assert mine.get("tool_call_id", "") == theirs.get("tool_call_id", "")
    assert compared


def as_json(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return text


@needs_data
@pytest.mark.parametrize(
    ("name", "roles", "called", "ends"),
    [
        (
            "agno-2025-06-11",
            "system user assistant tool assistant",
            ["duckduckgo_search"],
            "trending topics!",
        ),
        ("crewai-2025-07-11", "system user assistant", [], "</html>\n```"),
        ("google-adk-2025-08-28", "system user assistant tool assistant", ["say_hello"], "👋!\n"),
        (
            "koog-2025-08-26",
            "system user assistant tool assistant tool assistant",
            ["HelloTool", "ByeTool"],
            "bye my dear Bob!",
        ),
        ("langgraph-python-2025-08-22", "user user assistant tool assistant", ["Web-Search"], "or function."),
        ("microsoft-agent-2025-12-17", "system user assistant tool assistant", ["get_weather"], "23°C."),
        ("pydantic-ai-2025-06-06", "system user assistant", [], "cloud-based solutions."),
        (
            "pydantic-ai-tools-2025-12-04",
            "system user assistant tool tool tool assistant user assistant",
            ["get_pun_suggestion", "get_dad_joke_suggestion", "get_one_liner_suggestion"],
            "too many bugs!",
        ),
        # The agent stopped after the tool.
        ("vercel-aisdk-2025-11-17", "user assistant tool", ["getWeather"], ""),
    ],
)
def test_a_trace_is_the_conversation_that_took_place(
    name: str, roles: str, called: list[str], ends: str
) -> None:
    record = only(open_json(FOLDER / f"{name}.trace.json"))
    assert " ".join(message["role"] for message in record.trajectory["messages"]) == roles
    calls = record.trajectory["tool_calls"]
    assert [call["name"] for call in calls] == called
    assert all(call["error"] is None and call["result"] for call in calls)
    assert record.reply.endswith(ends)


@needs_data
def test_scores_of_evaluators_are_scores_and_their_comments_findings() -> None:
    record = only(open_json(FOLDER / "microsoft-agent-2025-12-17.trace.json"))
    assert record.scores == {"correctness": 1, "hallucination": 0.9, "toxicity": 0}
    assert record.findings[1]["text"].startswith("The generation claims the weather in Tokyo")
    assert record.source_id == "8e419d3288419b5d944270505640e183"


def test_what_people_said_is_feedback_and_a_correction_speaks_against_the_reply() -> None:
    scores = [
        {"name": "helpful", "value": 0, "dataType": "BOOLEAN", "source": "ANNOTATION", "comment": "rude"},
        {"name": "verdict", "stringValue": "bad", "dataType": "CATEGORICAL", "source": "API"},
        {"name": "output", "longStringValue": "89 yuan", "dataType": "CORRECTION", "source": "ANNOTATION"},
    ]
    record = only(trace(input='"What is it?"', output='"98 yuan"', scores=scores))
    assert record.feedback == (
        Feedback("helpful", value=False, comment="rude"),
        Feedback("verdict", "bad"),
        Feedback("correction", value=False, comment="89 yuan"),
    )
    assert (record.reply, record.scores) == ("98 yuan", {})


def test_an_error_of_an_observation_is_told_once() -> None:
    failed = {"level": "ERROR", "statusMessage": "HTTP 500"}
    observations = [
        step("agent", "AGENT", **failed),
        step("get_price", "TOOL", parentObservationId="agent", **failed),
    ]
    record = only({"trace": trace(input='"price?"'), "observations": observations})
    assert record.errors == ("get_price: HTTP 500",)
    assert record.has_status


def test_observations_that_come_apart_are_put_together_by_their_trace() -> None:
    first = step("g1", input=[{"role": "user", "content": "hi"}], output="hello")
    other = {**step("g2", input=[{"role": "user", "content": "bye"}], output="good-bye"), "traceId": "t2"}
    second = step("g3", input=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
    records = read(first, other, second)
    assert [(r.source_id, r.line) for r in records if isinstance(r, Record)] == [("t1", 1), ("t2", 2)]


def test_answers_of_the_api_and_names_in_snake_case_are_read() -> None:
    exported = {"id": "t9", "project_id": "p", "timestamp": "2025-06-01 10:00:00.000000", "session_id": "s"}
    record = only({"data": [{**exported, "input": '"hi"', "output": '"hello"'}], "meta": {"page": 1}})
    assert (record.source_id, record.context["session"], record.reply) == ("t9", "s", "hello")
    assert langfuse.fits(exported)


def test_a_trace_in_which_nothing_was_said_is_rejected_with_its_line() -> None:
    rejected, fine = read(trace(observations=[step("a", "SPAN")]), trace(id="t2", input='"hi"'))
    assert isinstance(rejected, Rejected)
    assert rejected.line == 1
    assert isinstance(fine, Record)


@pytest.mark.parametrize("value", [3, "x", [], {"data": []}, {"id": "1", "timestamp": "x"}, {"messages": []}])
def test_other_values_are_no_exports(value: object) -> None:
    assert not langfuse.fits(value)
