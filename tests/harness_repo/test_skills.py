import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_repo.skills import Skill, parse_skill
from tests.harness_repo.build import SKILL

PATH = "skills/item_qa/SKILL.md"


def read(data: str | bytes) -> tuple[Skill | None, list[tuple[str, int]]]:
    skill, problems = parse_skill(PATH, data.encode() if isinstance(data, str) else data)
    return skill, [(problem.code, problem.line) for problem in problems]


def test_a_sound_skill_is_read_without_problems() -> None:
    skill, problems = read(SKILL)
    body = "# Item questions\n\nCall get_item."
    assert skill == Skill("item_qa", "Questions about an item.", "reply", body, PATH)
    assert problems == []


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b""])
def test_byte_order_mark_and_carriage_returns_are_mended(start: bytes) -> None:
    skill, problems = read(start + SKILL.replace(b"\n", b"\r\n"))
    assert skill == read(SKILL)[0]
    assert ("line_ends", 1) in problems


def test_an_unquoted_colon_is_named_by_line_and_the_skill_still_read() -> None:
    skill, problems = read(
        "---\nname: item_qa\ndescription: Use it: now\nmetadata:\n  kind: strategy\n---\nBody"
    )
    assert skill == Skill("item_qa", "Use it: now", "strategy", "Body", PATH)
    assert problems == [("yaml_syntax", 3)]


def test_a_tab_is_named_by_line() -> None:
    skill, problems = read("---\nname: item_qa\ndescription: D\nmetadata:\n\tkind: strategy\n---\nBody")
    assert skill is not None
    assert skill.kind == "strategy"
    assert problems == [("yaml_syntax", 5)]


@pytest.mark.parametrize("text", ["", "# Only a title\n", "\n\nname: x\n"])
def test_without_front_matter_there_is_no_skill(text: str) -> None:
    skill, problems = read(text)
    assert skill is None
    assert problems[0][0] == "front_matter_missing"


@pytest.mark.parametrize("end", ["", "----\n"])
def test_front_matter_that_is_never_closed_is_taken_as_far_as_it_goes(end: str) -> None:
    skill, problems = read(f"---\nname: item_qa\ndescription: D\n{end}\n# Body\nText")
    assert skill == Skill("item_qa", "D", "reply", "# Body\nText", PATH)
    assert problems == [("front_matter_unclosed", 1)]


def test_a_rule_in_the_body_is_body() -> None:
    skill, problems = read("---\nname: item_qa\ndescription: D\n---\nA\n\n---\n\nB\n")
    assert skill is not None
    assert skill.body == "A\n\n---\n\nB"
    assert problems == []


def test_space_before_the_front_matter_is_a_warning() -> None:
    skill, problems = read("\n ---\nname: item_qa\ndescription: D\n---\nBody")
    assert skill is not None
    assert problems == [("front_matter_position", 1)]


@pytest.mark.parametrize("name", ["Item_QA", "a--b", "-a", "a-", "商品", "a b", "x" * 65])
def test_a_bad_name_is_named_by_line_and_the_skill_still_read(name: str) -> None:
    skill, problems = read(f"---\nname: {name}\ndescription: D\n---\nBody")
    assert skill is not None
    assert problems == [("skill_name", 2), ("skill_folder", 2)]


@pytest.mark.parametrize(
    ("front", "code"),
    [
        ("name: item_qa", "schema"),
        ("name: item_qa\ndescription:", "schema"),
        ("name: item_qa\ndescription: [a]", "schema"),
        ("- a\n- b", "front_matter"),
    ],
)
def test_without_a_description_there_is_no_skill(front: str, code: str) -> None:
    skill, problems = read(f"---\n{front}\n---\nBody")
    assert skill is None
    assert problems[0][0] == code


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("metadata: {kind: other}", "schema"),
        ("metadata: {version: 1}", "schema"),
        ("licence: MIT", "unknown_key"),
        (f"compatibility: {'x' * 501}", "schema"),
        ("name: again", "yaml_duplicate_key"),
    ],
)
def test_what_is_wrong_beside_the_description_leaves_the_skill(line: str, code: str) -> None:
    skill, problems = read(f"---\nname: item_qa\ndescription: D\n{line}\n---\nBody")
    assert skill is not None
    assert problems == [(code, 4)]


def test_a_description_of_1025_characters_is_too_long() -> None:
    assert read(f"---\nname: item_qa\ndescription: {'x' * 1024}\n---\n")[1] == []
    assert read(f"---\nname: item_qa\ndescription: {'x' * 1025}\n---\n")[1] == [("schema", 3)]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"---\nname: a\0b\n", "nul_byte"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "lfs_pointer"),
        (b"x" * 600_000, "too_large"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, code: str) -> None:
    skill, problems = read(data)
    assert skill is None
    assert [problem[0] for problem in problems] == [code]


def test_utf16_is_read_and_reported() -> None:
    skill, problems = read(SKILL.decode().encode("utf-16"))
    assert skill == read(SKILL)[0]
    assert problems == [("encoding", 1)]


def test_a_broken_byte_is_named_by_line() -> None:
    skill, problems = read(SKILL.replace(b"Call", b"C\xffll"))
    assert skill is not None
    assert problems == [("encoding", 9)]


@given(st.binary(max_size=200) | st.text(alphabet="-\n: \t&*[]{}aname'\"|>!%", max_size=80).map(str.encode))
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    for prefix in (b"", b"---\nname: item_qa\ndescription: D\n"):
        _, problems = parse_skill(PATH, prefix + data)
        assert all(problem.code for problem in problems)
