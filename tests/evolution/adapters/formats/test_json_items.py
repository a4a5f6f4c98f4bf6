import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolution.adapters.formats import json_items, list_items
from evolution.adapters.formats.json_items import read_json
from evolution.adapters.formats.values import RecordProblem

RECORDS = [{"a": [1, {"b": 2}]}, {"c": "x\ny"}, {"d": None}]


def read(content: str | bytes) -> list[Any]:
    data = content if isinstance(content, bytes) else content.encode()
    return list(read_json(io.BytesIO(data)))


def outline(content: str | bytes) -> list[tuple[int, int, Any]]:
    """Line, number and value of each item; a problem is its text."""
    return [
        (item.line, item.number, str(item.value) if isinstance(item.value, RecordProblem) else item.value)
        for item in read(content)
    ]


def good(content: str | bytes) -> list[Any]:
    return [item.value for item in read(content) if not isinstance(item.value, RecordProblem)]


def bad(content: str | bytes) -> list[int]:
    return [item.line for item in read(content) if isinstance(item.value, RecordProblem)]


objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
LAYOUTS: dict[str, Callable[[list[Any]], str]] = {
    "lines": lambda values: "\n".join(json.dumps(value) for value in values),
    "lines of UTF-8": lambda values: "\n".join(json.dumps(value, ensure_ascii=False) for value in values),
    "list": json.dumps,
    "list by lines": lambda values: "[\n" + ",\n".join(json.dumps(value) for value in values) + "\n]\n",
    "list laid out": lambda values: json.dumps(values, indent=2),
    "one after the other": lambda values: "".join(json.dumps(value, indent=1) for value in values),
    "laid out by lines": lambda values: "\r\n".join(json.dumps(value, indent=1) for value in values),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=40, deadline=None)
@given(values=st.lists(objects, min_size=1, max_size=5))
def test_all_layouts_give_the_same_values(layout: str, values: list[dict[str, Any]]) -> None:
    storable = json.loads(json.dumps(values).replace("\\u0000", "0"))
    assert good(LAYOUTS[layout](storable)) == storable


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("\n".join(map(json.dumps, RECORDS)), [1, 2, 3]),
        ("\r\n\r\n" + "\r\n\r\n".join(map(json.dumps, RECORDS)), [3, 5, 7]),
        (json.dumps(RECORDS), [1, 1, 1]),
        # Counted by hand: a bracket, an object of 8 lines, one of 3, one of 3.
        (json.dumps(RECORDS, indent=1), [2, 10, 13]),
        ("\n\n" + "\n".join(json.dumps(record, indent=1) for record in RECORDS), [3, 11, 14]),
    ],
)
def test_lines_are_physical_lines(content: str, lines: list[int]) -> None:
    assert [item.line for item in read(content)] == lines


def test_values_on_one_line_have_numbers() -> None:
    assert outline('{"a":1}{"b":2}, {"c":3}\n[{"d":4}, {"e":5}]\n') == [
        (1, 0, {"a": 1}),
        (1, 2, {"b": 2}),
        (1, 3, {"c": 3}),
        (2, 0, {"d": 4}),
        (2, 2, {"e": 5}),
    ]


@pytest.mark.parametrize(
    ("content", "kept", "rejected"),
    [
        # Lines that were cut, garbage, bytes that are no UTF-8, NUL from a crash.
        ('{"a":1}\n{"b":"cut\n{"c":3}\n', [{"a": 1}, {"c": 3}], [2]),
        ('{"a": \n{"b":2}\n', [{"b": 2}], [1]),
        ('{"a": [1,\n{"b":2}\nhello\n{"c":3}\n', [{"b": 2}, {"c": 3}], [1, 3]),
        (b'{"a":1}\n{"b":"\xff"}\n{"c":3}', [{"a": 1}, {"c": 3}], [2]),
        (b'\0\0\0{"a":1}\n{"b":2}', [{"b": 2}], [1]),
        ('{"a":1} x\n{"b":2}}\n{"c":3}', [{"c": 3}], [1, 2]),
        ("[" * 100_000 + '\n{"a":1}', [], [1]),
        ('{"a":' * 2000 + '\n{"b":1}\n', [{"b": 1}], [1]),
        # Lists: a wrong element, a file that ends in one, between two, and before the first.
        ('[{"a":1},\n{"b" 2},\n{"c":3}]', [{"a": 1}, {"c": 3}], [2]),
        ('[{"a":1}, {"b" 2}, {"c":3}]', [{"a": 1}, {"c": 3}], [1]),
        ('[{"a":1},\n{"b":[2', [{"a": 1}], [2]),
        ('[{"a":1},\n{"b":2},\n', [{"a": 1}, {"b": 2}], [3]),
        ("[", [], [1]),
        (b'[{"a":"\xff"}, {"b":"\xe4\xb8\xad"}]', [{"b": "中"}], [1]),
        (json.dumps(RECORDS, indent=2).replace("null", "nil"), RECORDS[:2], [13]),
        (json.dumps(RECORDS, indent=2).replace("2\n", "2 2\n"), RECORDS[1:], [2]),
        # Objects laid out: a wrong one, a file that ends in one.
        (json.dumps(RECORDS[0], indent=1).replace("1,", "1 1,") + '\n{"b":\n2}', [{"b": 2}], [1]),
        ('{"a":1}\n' + json.dumps(RECORDS[0], indent=1)[:20], [{"a": 1}], [2]),
    ],
)
def test_what_is_broken_costs_only_itself(content: str | bytes, kept: list[Any], rejected: list[int]) -> None:
    assert (good(content), bad(content)) == (kept, rejected)


@pytest.mark.parametrize(
    "content", ['[{"a":1},]', '[{"a":1}\n{"b":2}]', '[{"a":1},,{"b":2},]', '{"a":1},\n{"b":2},\n']
)
def test_commas_too_many_or_too_few_do_no_harm(content: str) -> None:
    assert not bad(content)
    assert {"a": 1} in good(content)


@pytest.mark.parametrize("content", ["", " \n\r\n", "[]", "[\n]"])
def test_nothing_is_nothing(content: str) -> None:
    assert read(content) == []


def test_a_lone_carriage_return_ends_no_line() -> None:
    assert outline('{"a":1}\r{"b":2}\r\n{"c":3}') == [(1, 0, {"a": 1}), (1, 2, {"b": 2}), (2, 0, {"c": 3})]


def test_raw_control_characters_within_a_line_are_let_pass() -> None:
    assert good('{"a":"x\ty\x01"}\n{"b":"\0"}') == [{"a": "x\ty\x01"}, {"b": "\\u0000"}]


def test_a_conversation_on_its_line_is_no_list_of_records() -> None:
    chat = [{"role": "user", "content": "hi"}]
    assert good(f"{json.dumps(chat)}\n{json.dumps(chat)}\n") == [chat, chat]
    assert good(json.dumps([chat, chat])) == [chat, chat]
    assert good(json.dumps(chat)) == chat


def test_a_long_line_behind_a_list_is_whole() -> None:
    long = [{"a": "x" * 3_000_000}]
    assert good(f"[1]\n{json.dumps(long)}\n[2]") == [1, *long, 2]


def test_a_line_that_is_too_long_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_items, "MOST_BYTES", 1000)
    content = '{"a":1}\n{"b":"' + "x" * 3_000_000 + '"}\n{"c":3}\n'
    assert (good(content), bad(content)) == ([{"a": 1}, {"c": 3}], [2])


def test_an_element_that_is_too_long_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_items, "MOST_BYTES", 1000)
    content = '[\n{"a":1},\n{"b":"' + "x" * 5_000_000 + '"},\n{"c":3}\n]'
    assert (good(content), bad(content)) == ([{"a": 1}, {"c": 3}], [3])


@pytest.mark.parametrize("as_list", [True, False])
def test_ten_megabytes_are_a_line_like_others(as_list: bool) -> None:  # noqa: FBT001  parametrized
    records = [{"a": "中" * 3_500_000}, {"b": 1}]
    content = json.dumps(records, ensure_ascii=False) if as_list else "\n".join(map(json.dumps, records))
    assert good(content) == records


@pytest.mark.parametrize("block", [1, 2, 3, 4, 5, 7, 64])
def test_it_does_not_matter_where_blocks_end(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    records = [*RECORDS, {"n": -12.5e3, "t": True, "s": '中😀\\"\u2028'}, 12, "x", [1, [2]], None, -0.5]
    content = json.dumps(records, indent=1, ensure_ascii=False).encode()
    monkeypatch.setattr("evolution.adapters.formats.line_feed._BLOCK", block)
    monkeypatch.setattr(list_items, "_TRIM", 10)
    assert outline(content) == outline(json.dumps(records, indent=1))


def test_an_element_whose_quotes_are_off_costs_only_itself() -> None:
    good_one = '{"id": "%d", "request": "a, b"}'
    broken = '{"id": "2", "request": "un"terminated", "m": [{"id": 1}, {"id": 2}]}'
    content = f"[{good_one % 1},{broken},{good_one % 3}, {good_one % 4}]"
    assert [value["id"] for value in good(content)] == ["1", "3", "4"]
    assert bad(content) == [1]


def test_a_first_element_whose_quotes_are_off_costs_only_itself() -> None:
    content = '[{"id": "1", "request": "un"terminated"},{"id": "2", "request": "a"}]'
    assert [value["id"] for value in good(content)] == ["2"]


def test_an_element_behind_which_nothing_can_be_read_says_so() -> None:
    content = '[\n  {"id": un},\n {"id": 2}]'
    assert "what follows" in str(read(content)[0].value)
