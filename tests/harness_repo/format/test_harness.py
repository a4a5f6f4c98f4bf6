import dataclasses
import re
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_repo.format import harness as harness_module
from harness_repo.format.harness import Harness, Limits, is_harness_path, read_harness
from harness_repo.format.prompts import parse_template
from tests.harness_repo.build import CONFIG, FILES, HOOK, SKILL, TOOL

LIMITS = re.compile(rb"limits: .*")


def codes(harness: Harness) -> list[tuple[str, str, int]]:
    return [(problem.path, problem.code, problem.line) for problem in harness.problems]


def read(**changes: bytes | None) -> Harness:
    """The small harness with harness.yaml (`config`) changed, or with files by path."""
    files = {**FILES, "harness.yaml": changes.pop("config", CONFIG), **changes}
    return read_harness({path: data for path, data in files.items() if data is not None})


def test_all_four_parts_are_read() -> None:
    harness = read_harness(FILES)
    assert harness.problems == []
    assert (harness.name, harness.kind, harness.model) == ("tiny", "agent", {"temperature": 0})
    assert harness.limits == Limits(turns=4, tool_calls=3, hook_retries=1, seconds=5)
    assert [(section.name, section.role) for section in harness.prompt] == [
        ("role", "system"),
        ("request", "user"),
    ]
    assert [list(harness.skills), list(harness.tools)] == [["item-qa"], ["get_item"]]
    assert [hook.name for hook in harness.hooks] == ["short"]


def test_the_labels_of_a_result_are_shown_to_the_model() -> None:
    assert read_harness(FILES).tools["get_item"].description == "Looks up an item.\n返回：price（价格）"


def test_without_harness_yaml_the_parts_are_still_read() -> None:
    harness = read_harness({path: data for path, data in FILES.items() if path != "harness.yaml"})
    assert ("harness.yaml", "config_missing", 0) in codes(harness)
    assert list(harness.skills) == ["item-qa"]


def test_a_wrong_limit_falls_back_and_is_named_by_line() -> None:
    harness = read(config=CONFIG.replace(b"turns: 4", b"turns: zero"))
    assert codes(harness) == [("harness.yaml", "schema", 5)]
    assert (harness.limits.turns, harness.limits.tool_calls) == (Limits().turns, 3)


@pytest.mark.parametrize("limit", ["turns: 51", "seconds: 301", "tool_calls: 201", "hook_retries: 11"])
def test_no_harness_goes_beyond_what_a_task_may_take(limit: str) -> None:
    name = limit.split(":", maxsplit=1)[0]
    harness = read(config=LIMITS.sub(f"limits: {{{limit}}}".encode(), CONFIG))
    assert codes(harness) == [("harness.yaml", "schema", 5)]
    assert getattr(harness.limits, name) == getattr(Limits(), name)


def test_limits_that_count_are_whole_numbers_however_they_are_written() -> None:
    limits = read(config=LIMITS.sub(b"limits: {turns: 3.0, tokens: 1e3, seconds: 2.5}", CONFIG)).limits
    assert (repr(limits.turns), repr(limits.tokens), limits.seconds) == ("3", "1000", 2.5)


def test_a_template_nested_without_end_is_a_problem() -> None:
    harness = read(**{"prompts/request.md": b"{{ " + b"(" * 3000 + b"1" + b")" * 3000 + b" }}"})
    assert codes(harness) == [("prompts/request.md", "template_syntax", 0)]


def test_a_wrong_section_leaves_the_others() -> None:
    harness = read(config=CONFIG.replace(b"{name: role, file: prompts/role.md}", b"{name: role}"))
    assert [section.name for section in harness.prompt] == ["request"]
    assert ("harness.yaml", "schema", 7) in codes(harness)
    assert ("prompts/role.md", "prompt_unused", 0) in codes(harness)


def test_an_unknown_key_is_a_warning_with_its_line() -> None:
    harness = read(config=CONFIG + b"colour: red\n")
    assert codes(harness) == [("harness.yaml", "unknown_key", 10)]
    assert not harness.problems[0].is_error


def test_a_section_without_its_file_is_named_where_it_is_listed() -> None:
    harness = read(**{"prompts/request.md": None})
    assert codes(harness) == [("harness.yaml", "prompt_missing", 8)]


def test_a_broken_template_is_named_by_line_and_left_out() -> None:
    harness = read(**{"prompts/request.md": b"fine\n{% for x in danmaku %}\n{% endif %}\n"})
    assert codes(harness) == [("prompts/request.md", "template_syntax", 3)]
    assert [section.name for section in harness.prompt] == ["role"]


def test_a_variable_that_nobody_sets_is_a_warning() -> None:
    harness = read(**{"prompts/request.md": b"{{ danmaku }}\n{{ rooom.name }}\n"})
    assert codes(harness) == [("prompts/request.md", "template_variable", 2)]


def test_of_two_skills_of_one_name_the_first_stays() -> None:
    harness = read(**{"skills/zz/SKILL.md": SKILL})
    assert harness.skills["item-qa"].path == "skills/item-qa/SKILL.md"
    assert ("skills/zz/SKILL.md", "duplicate_name", 2) in codes(harness)


@pytest.mark.parametrize(
    ("front", "line"),
    [
        ("metadata:\n  name: other\nname: item-qa\ndescription: D", 4),
        ("description: D\nname : item-qa", 3),
        (" name: item-qa\n description: D", 2),
        ("{description: D,\n name: item-qa}", 3),
    ],
)
def test_a_name_that_is_taken_is_told_at_the_line_of_the_skill_s_own(front: str, line: int) -> None:
    harness = read(**{"skills/zz/SKILL.md": f"---\n{front}\n---\nname: no\n".encode()})
    assert ("skills/zz/SKILL.md", "duplicate_name", line) in codes(harness)


def test_a_section_that_is_listed_often_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = Mock(wraps=parse_template)
    monkeypatch.setattr(harness_module, "parse_template", parsed)
    harness = read(
        config=CONFIG.replace(b"prompt:\n", b"prompt:\n" + b"  - {name: a, file: prompts/role.md}\n" * 9)
    )
    assert (len(harness.prompt), parsed.call_count) == (11, 2)


def test_a_broken_skill_leaves_the_rest_of_the_harness() -> None:
    harness = read(**{"skills/bad/SKILL.md": b"no front matter"})
    assert codes(harness) == [("skills/bad/SKILL.md", "front_matter_missing", 1)]
    assert list(harness.skills) == ["item-qa"]


def test_a_required_reply_skill_that_is_not_there_is_an_error() -> None:
    harness = read(**{"skills/item-qa/SKILL.md": SKILL.replace(b"kind: reply", b"kind: strategy")})
    assert codes(harness) == [("harness.yaml", "no_reply_skill", 9)]


def test_skills_that_no_section_shows_are_a_warning() -> None:
    assert codes(read(**{"prompts/role.md": b"You sell."})) == [("harness.yaml", "skills_hidden", 6)]


@pytest.mark.parametrize("schema", ["{type: nothing}", "{properties: 3}"])
def test_a_reply_schema_that_is_none_is_left_out(schema: str) -> None:
    harness = read(config=CONFIG + f"reply_schema: {schema}\n".encode())
    assert codes(harness) == [("harness.yaml", "reply_schema", 10)]
    assert harness.reply_schema is None


def test_a_judge_needs_a_reply_schema() -> None:
    harness = read(config=CONFIG.replace(b"agent", b"judge"), **{"prompts/request.md": b"{{ case }}"})
    assert codes(harness) == [("harness.yaml", "judge_schema", 3)]


@pytest.mark.parametrize(
    ("before", "after", "code", "line"),
    [
        ("event: reply", "event: never", "schema", 2),
        ("kind: max_length, characters: 20", "kind: max_length", "schema", 3),
        ("kind: max_length, characters: 20", "kind: unheard_of", "schema", 3),
        ("{kind: max_length, characters: 20}", '{cel: "1 +"}', "cel_syntax", 3),
        ("kind: max_length, characters: 20", "kind: forbid, patterns: ['(']", "regex_syntax", 3),
        ("action: retry, message", "action: block, message", "schema", 4),
        ("event: reply", "event: input", "hook_action", 4),
        (
            "kind: max_length, characters: 20",
            "kind: valid_json, schema: {$ref: 'http://h/'}",
            "check_schema",
            3,
        ),
        ("kind: max_length, characters: 20", "kind: valid_json, schema: {$ref: '#/no'}", "check_schema", 3),
        (
            "{kind: max_length, characters: 20}",
            '{cel: "[1].all(a, [1].all(b, [1].all(c, true)))"}',
            "cel_syntax",
            3,
        ),
        pytest.param(
            "kind: max_length, characters: 20",
            f"kind: forbid, patterns: ['{'(' * 1900 + ')' * 1900}']",
            "regex_syntax",
            3,
            id="nested pattern",
        ),
    ],
)
def test_a_hook_with_an_error_is_left_out(before: str, after: str, code: str, line: int) -> None:
    text = HOOK.decode()
    assert before in text
    harness = read(**{"hooks/short.yaml": text.replace(before, after).encode()})
    assert harness.hooks == []
    assert codes(harness)[0] == ("hooks/short.yaml", code, line)


def test_a_hook_that_names_a_skill_that_is_not_there_is_an_error() -> None:
    text = HOOK.replace(b"kind: max_length, characters: 20", b"kind: requires_skill, skills: [nowhere]")
    assert codes(read(**{"hooks/short.yaml": text})) == [("hooks/short.yaml", "unknown_skill", 0)]


@pytest.mark.parametrize(
    ("before", "after", "code", "line"),
    [
        ("name: get_item", "name: get item", "schema", 1),
        ("name: get_item", "name: load_skill", "tool_name", 1),
        ("{type: integer}", "{type: whole}", "tool_parameters", 3),
        ("kind: fixture", "kind: shell", "schema", 9),
        ("type: object\n", "type: array\n", "schema", 4),
    ],
)
def test_a_tool_with_an_error_is_left_out(before: str, after: str, code: str, line: int) -> None:
    text = TOOL.decode()
    assert before in text
    harness = read(**{"tools/get_item.yaml": text.replace(before, after).encode()})
    assert harness.tools == {}
    assert codes(harness) == [("tools/get_item.yaml", code, line)]


@pytest.mark.parametrize(
    ("path", "belongs"),
    [("harness.yaml", True), ("skills/a/SKILL.md", True), ("README.md", False), ("skillsx/a", False)],
)
def test_a_harness_is_one_file_and_four_folders(path: str, *, belongs: bool) -> None:
    assert is_harness_path(path) is belongs


@given(st.dictionaries(st.sampled_from(sorted(FILES)), st.binary(max_size=120) | st.just(b""), max_size=3))
def test_no_content_makes_the_reader_raise(changed: dict[str, bytes]) -> None:
    harness = read_harness({**FILES, **changed})
    assert dataclasses.is_dataclass(harness)


@given(
    st.sampled_from(sorted(FILES)),
    st.integers(0, 300),
    st.sampled_from([b"", b"\n", b": ", b"[", b"- ", b"{{", b"3"]),
)
def test_a_slip_of_the_pen_makes_no_reader_raise(path: str, at: int, slip: bytes) -> None:
    data = FILES[path]
    harness = read_harness({**FILES, path: data[:at] + slip + data[at + 1 :]})
    assert isinstance(harness.limits, Limits)
