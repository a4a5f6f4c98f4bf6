import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness_repo.format.yamlfile import check_schema, parse_yaml, read_yaml

LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
)

# No text of a harness has a NUL.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def value_of(text: str) -> object:
    read, problems = parse_yaml("x.yaml", text)
    assert problems == []
    assert read is not None
    return read.value


def codes(text: str) -> list[tuple[str, int]]:
    return [(problem.code, problem.line) for problem in parse_yaml("x.yaml", text)[1]]


def test_values_are_those_of_yaml_1_2_and_of_json() -> None:
    text = "a: [1, 010, 0o7, 0x1F, 1.5, 1e3, true, null, ~, yes, '2', 2020-01-01, .inf]\nb: |\n  x\n"
    expected = [1, 10, 7, 31, 1.5, 1000.0, True, None, None, "yes", "2", "2020-01-01", ".inf"]
    assert value_of(text) == {"a": expected, "b": "x\n"}


@given(json_values)
def test_what_another_library_writes_is_read_back(value: object) -> None:
    # In quotes, since PyYAML speaks YAML 1.1, where other plain texts are numbers and booleans.
    text = yaml.safe_dump(value, allow_unicode=True, default_style='"')
    read, problems = parse_yaml("x.yaml", text)
    if not any(problem.code == "yaml_limit" for problem in problems):
        assert read is not None
        assert read.value == value


def test_every_value_knows_its_line() -> None:
    read, _ = parse_yaml("x.yaml", "a: 1\nb:\n  c:\n    - x\n    - y\n", first_line=10)
    assert read is not None
    assert [read.line_of(at) for at in (("a",), ("b", "c"), ("b", "c", 1), ("b", "c", 7), ("z",))] == [
        10, 12, 14, 12, 10,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b: c", ("yaml_syntax", 1)),
        ("x: 1\na:\n\t- b", ("yaml_syntax", 3)),
        ("a: *nowhere", ("yaml_syntax", 1)),
        ("---\na: 1\n---\nb: 2", ("yaml_syntax", 3)),
        ("a: 1\nb: 2\na: 3", ("yaml_duplicate_key", 3)),
        ("a: 1\n[b]: 2", ("yaml_limit", 2)),
        ("a: 1\n<<: {b: 2}", ("yaml_limit", 2)),
        ("[" * 2000, ("yaml_limit", 1)),
        ("a: " + "[" * 60 + "]" * 60, ("yaml_limit", 1)),
        ("a: &x [*x]", ("yaml_limit", 1)),
        (LAUGHS, ("yaml_limit", 3)),
        ("a: [" + "x," * 25_000 + "]", ("yaml_limit", 1)),
    ],
)
def test_what_cannot_be_read_is_named_by_code_and_line(text: str, expected: tuple[str, int]) -> None:
    assert codes(text)[0][0] == expected[0]
    assert codes(text) == [expected]


def test_a_tag_builds_no_object() -> None:
    assert value_of("a: !!python/object/apply:os.system [echo]") == {"a": ["echo"]}


@given(st.binary(max_size=200) | st.text(alphabet="-\n: \t&*[]{}ab'\"|>!%?,#", max_size=80).map(str.encode))
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    read, problems = read_yaml("x.yaml", data)
    assert read is not None or problems


@pytest.mark.parametrize(
    ("schema", "text", "hint"),
    [
        ("skill", "name: a\ndescription: b\nauthor: c", "put it under metadata"),
        ("skill", "name: a\ndescription: b\nallowed_tools: c", "meant is perhaps allowed-tools"),
        ("harness", "format: 1\nname: a\nprompt: []\nskill-folders: [a]", "meant is perhaps skill_folders"),
        ("harness", "format: 1\nname: a\nprompt: []\nlimits: {turn: 1}", "meant is perhaps turns"),
        (
            "harness",
            "format: 1\nname: a\nprompt: []\nlimits: {zzz: 1}",
            "known here: turns, tool_calls, hook_retries, seconds, tokens",
        ),
    ],
)
def test_a_key_that_nobody_knows_comes_with_one_that_may_be_meant(schema: str, text: str, hint: str) -> None:
    read, _ = parse_yaml("a", text)
    assert read is not None
    problems, _ = check_schema("a", read, schema)
    assert [(problem.code, problem.hint) for problem in problems if problem.code != "schema"] == [
        ("unknown_key", hint)
    ]
