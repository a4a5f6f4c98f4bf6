"""A good harness with one field replaced by anything: never an exception, and problems point into the file."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_repo.format.cel import check_cel
from harness_repo.format.harness import read_harness
from tests.harness_repo.build import CONFIG, FILES, HOOK, SKILL, TOOL
from tests.harness_repo.format.test_messes import lines_of

CEL = "a 1 's' [ ] ( ) .map( .min() .map() .all(x , ? : && ! - 99999999999999999999 ."
JINJA = "{{ }} {% %} {# if for x in endfor endif a 999999999 ** * % '%d' | round"
REGEX = r"( ) [ ] {9} {99999999999} * + ? \p{ \1 (?1) (?R) (?P< (?i) a | ^"
JMESPATH = "a [ ] [*] [? | & @ `1` ` ' \" { } {link_id} length( ) . -1"
PLACES = "# #/a #/required/x #/enum/-1 #/enum/0 #/title/0 //[x http://[ http://h:99999999/ a:b"
NUMBERS = ["1" * 5000, "0x" + "f" * 5000, "1e999", ".nan", "-.inf", "+_", "0x_", "._", "!!float nan"]

# The library raises Python's limit of recursion when it is first used, and hypothesis would wonder.
check_cel("true")


def pieces(words: str) -> st.SearchStrategy[str]:
    """Some of the words with and without space between them, or anything."""
    some = st.lists(st.sampled_from([*words.split(), " "]), max_size=8)
    return some.map("".join) | some.map(" ".join) | st.text(max_size=8)


# Numbers that JSON has, and Python can write.
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
places = st.sampled_from(PLACES.split())
schemas: st.SearchStrategy[Any] = st.recursive(
    values | places,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {},
            optional={
                "$ref": places,
                "$dynamicRef": places,
                "$id": places,
                "$anchor": st.just("a"),
                "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
                "items": inner,
                "allOf": st.lists(inner, max_size=2),
                "enum": st.lists(inner, max_size=2),
                "required": st.lists(st.sampled_from("ab") | inner, max_size=2),
                "title": st.just("t"),
                "pattern": pieces(REGEX),
                "multipleOf": values,
            },
        )
    ),
    max_leaves=12,
)


def check(path: str, data: bytes) -> None:
    harness = read_harness({**FILES, path: data})
    assert all(0 <= problem.line <= lines_of(data) for problem in harness.problems if problem.path == path)
    # They go into a database, and over the network.
    json.dumps([problem.message for problem in harness.problems]).encode()


def replace(data: bytes, field: bytes, value: object) -> bytes:
    """The value as JSON, which is YAML too."""
    assert field in data
    return data.replace(field, json.dumps(value).encode())


CHECK = b"{kind: max_length, characters: 20}"


@settings(max_examples=60, deadline=None)
@given(pieces(CEL))
def test_any_expression(source: str) -> None:
    check("hooks/short.yaml", replace(HOOK, CHECK, {"cel": source}))


@settings(max_examples=100, deadline=None)
@given(pieces(JINJA))
def test_any_template(text: str) -> None:
    for data in (text, f"{{{{ {text} }}}}", f"{{% {text} %}}"):
        check("prompts/role.md", data.encode("utf-8", "surrogatepass"))


@settings(max_examples=60, deadline=None)
@given(pieces(REGEX))
def test_any_pattern(pattern: str) -> None:
    check("hooks/short.yaml", replace(HOOK, CHECK, {"kind": "forbid", "patterns": [pattern]}))


@settings(max_examples=60, deadline=None)
@given(pieces(JMESPATH))
def test_any_selection(source: str) -> None:
    check("tools/get_item.yaml", replace(TOOL, b"{kind: fixture}", {"kind": "fixture", "select": source}))


@settings(max_examples=60, deadline=None)
@given(pieces(PLACES + r" https://h/ {link_id} { %zz \ [::1"))
def test_any_address(url: str) -> None:
    check(
        "tools/get_item.yaml", replace(TOOL, b"{kind: fixture}", {"kind": "http", "url": f"https://h/{url}"})
    )
    check("tools/get_item.yaml", replace(TOOL, b"{kind: fixture}", {"kind": "http", "url": url}))


@settings(max_examples=60, deadline=None)
@given(schemas)
def test_any_schema(schema: Any) -> None:
    check("tools/get_item.yaml", replace(TOOL, b"{type: integer}", schema))
    check("hooks/short.yaml", replace(HOOK, CHECK, {"schema": schema}))
    check("harness.yaml", CONFIG + b"reply_schema: " + json.dumps(schema).encode() + b"\n")


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([b"item-qa", b"Questions about an item.", b"reply"]), schemas | st.text())
def test_any_front_matter(field: bytes, value: Any) -> None:
    check("skills/item-qa/SKILL.md", replace(SKILL, field, value))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([b"tiny", b"agent", b"{temperature: 0}", b"prompts/role.md", b"true", b"5"]), schemas)
def test_any_setting(field: bytes, value: Any) -> None:
    check("harness.yaml", replace(CONFIG, field, value))


@pytest.mark.parametrize("text", NUMBERS)
def test_any_number(text: str) -> None:
    for field in (b"5", b"4", b"0", b"tiny", b"true"):
        check("harness.yaml", CONFIG.replace(field, text.encode()))
    check("tools/get_item.yaml", TOOL.replace(b"integer}", b"integer, minimum: " + text.encode() + b"}"))
