import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_repo.format.skills import Skill, parse_skill
from tests.harness_repo.build import SKILL

PATH = "skills/item-qa/SKILL.md"


def read(data: str | bytes) -> tuple[Skill | None, list[tuple[str, int]]]:
    skill, problems = parse_skill(PATH, data.encode() if isinstance(data, str) else data)
    return skill, [(problem.code, problem.line) for problem in problems]


def test_a_sound_skill_is_read_without_problems() -> None:
    skill, problems = read(SKILL)
    body = "# Item questions\n\nCall get_item."
    metadata = {"kind": "reply"}
    assert skill == Skill("item-qa", "Questions about an item.", "reply", body, PATH, metadata=metadata)
    assert problems == []


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b""])
def test_byte_order_mark_and_carriage_returns_are_mended(start: bytes) -> None:
    skill, problems = read(start + SKILL.replace(b"\n", b"\r\n"))
    assert skill == read(SKILL)[0]
    assert ("line_ends", 1) in problems


def test_an_unquoted_colon_is_named_by_line_and_the_skill_still_read() -> None:
    skill, problems = read(
        "---\nname: item-qa\ndescription: Use it: now\nmetadata:\n  kind: strategy\n---\nBody"
    )
    metadata = {"kind": "strategy"}
    assert skill == Skill("item-qa", "Use it: now", "strategy", "Body", PATH, metadata=metadata)
    assert problems == [("yaml_syntax", 3)]


def test_a_tab_is_named_by_line() -> None:
    skill, problems = read("---\nname: item-qa\ndescription: D\nmetadata:\n\tkind: strategy\n---\nBody")
    assert skill is not None
    assert skill.kind == "strategy"
    assert problems == [("yaml_syntax", 5)]


@pytest.mark.parametrize("text", ["", "# Only a title\n", "\n\nname: x\n"])
def test_without_front_matter_there_is_no_skill(text: str) -> None:
    skill, problems = read(text)
    assert skill is None
    assert problems[0][0] == "front_matter_missing"


def test_front_matter_that_is_never_closed_is_taken_as_far_as_it_goes() -> None:
    skill, problems = read("---\nname: item-qa\ndescription: D\n\n# Body\nText")
    assert skill == Skill("item-qa", "D", "reply", "# Body\nText", PATH)
    assert problems == [("front_matter_unclosed", 1)]


@pytest.mark.parametrize("fence", ["----", "--", "—", " ---", "..."])
def test_front_matter_closed_by_another_line_is_named_at_that_line(fence: str) -> None:
    skill, problems = read(f"---\nname: item-qa\ndescription: D\n{fence}\n# Body\n\n---\n\nText")
    assert skill == Skill("item-qa", "D", "reply", "# Body\n\n---\n\nText", PATH)
    assert problems == [("front_matter_fence", 4)]


def test_a_rule_in_the_body_does_not_close_the_front_matter() -> None:
    skill, problems = read("---\nname: item-qa\ndescription: D\n\n# Body\nText\n\n---\n\nMore")
    assert skill == Skill("item-qa", "D", "reply", "# Body\nText\n\n---\n\nMore", PATH)
    assert problems == [("front_matter_unclosed", 1)]


def test_a_rule_in_the_body_is_body() -> None:
    skill, problems = read("---\nname: item-qa\ndescription: D\n---\nA\n\n---\n\nB\n")
    assert skill is not None
    assert skill.body == "A\n\n---\n\nB"
    assert problems == []


def test_space_before_the_front_matter_is_a_warning() -> None:
    skill, problems = read("\n ---\nname: item-qa\ndescription: D\n---\nBody")
    assert skill is not None
    assert problems == [("front_matter_position", 1)]


@pytest.mark.parametrize("name", ["Item-QA", "item_qa", "a--b", "-a", "a-", "商品", "a b", "x" * 65])
def test_a_bad_name_is_named_by_line_and_the_skill_still_read(name: str) -> None:
    skill, problems = read(f"---\nname: {name}\ndescription: D\n---\nBody")
    assert skill is not None
    assert problems == [("skill_name", 2), ("skill_folder", 2)]


@pytest.mark.parametrize(
    ("front", "code"),
    [
        ("name: item-qa", "schema"),
        ("name: item-qa\ndescription:", "schema"),
        ("name: item-qa\ndescription: [a]", "schema"),
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
    skill, problems = read(f"---\nname: item-qa\ndescription: D\n{line}\n---\nBody")
    assert skill is not None
    assert problems == [(code, 4)]


def test_a_description_of_1025_characters_is_too_long() -> None:
    assert read(f"---\nname: item-qa\ndescription: {'x' * 1024}\n---\nB")[1] == []
    assert read(f"---\nname: item-qa\ndescription: {'x' * 1025}\n---\nB")[1] == [("schema", 3)]


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


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_read_and_reported(encoding: str) -> None:
    skill, problems = read(SKILL.decode().encode(encoding))
    assert skill == read(SKILL)[0]
    assert problems == [("encoding", 1)]


def test_a_zero_in_utf16_is_still_a_zero() -> None:
    assert read("a\nb\0".encode("utf-16")) == (None, [("encoding", 1), ("nul_byte", 2)])


@pytest.mark.parametrize(
    ("line", "expected", "codes"),
    [
        ("Bash(git add:*) Read", ("Bash(git add:*)", "Read"), []),
        ("Bash(a, b), Read", ("Bash(a, b)", "Read"), ["allowed_tools"]),
        ("[Bash, Read]", ("Bash", "Read"), ["allowed_tools"]),
        ("[Bash, 3]", ("Bash",), ["schema", "allowed_tools"]),
    ],
)
def test_allowed_tools_are_separated_by_spaces(
    line: str, expected: tuple[str, ...], codes: list[str]
) -> None:
    skill, problems = read(f"---\nname: item-qa\ndescription: D\nallowed-tools: {line}\n---\nBody")
    assert skill is not None
    assert skill.allowed_tools == expected
    assert problems == [(code, 4) for code in codes]


def test_all_of_the_specification_is_kept() -> None:
    front = "license: MIT\ncompatibility: needs git\nmetadata: {author: A, version: '1.0'}"
    skill, problems = read(f"---\nname: item-qa\ndescription: D\n{front}\n---\nBody")
    assert problems == []
    assert skill is not None
    assert (skill.license, skill.compatibility) == ("MIT", "needs git")
    assert skill.metadata == {"author": "A", "version": "1.0"}


def test_a_skill_without_instructions_is_a_warning() -> None:
    skill, problems = read("---\nname: item-qa\ndescription: D\n---\n\n")
    assert skill is not None
    assert problems == [("skill_body_empty", 2)]


@pytest.mark.parametrize("body", ["x" * 74_000, "x\n" * 501])
def test_a_long_skill_is_read_with_a_warning(body: str) -> None:
    skill, problems = read(f"---\nname: item-qa\ndescription: D\n---\n{body}")
    assert skill is not None
    assert len(skill.body) >= len(body) - 1
    assert problems == [("skill_long", 5)]


def test_a_skill_of_almost_the_right_file_name_is_read() -> None:
    skill, problems = parse_skill("skills/item-qa/skill.md", SKILL)
    assert skill is not None
    assert [(problem.code, problem.line) for problem in problems] == [("skill_file_name", 0)]


def test_a_broken_byte_is_named_by_line() -> None:
    skill, problems = read(SKILL.replace(b"Call", b"C\xffll"))
    assert skill is not None
    assert problems == [("encoding", 9)]


@given(st.binary(max_size=200) | st.text(alphabet="-\n: \t&*[]{}aname'\"|>!%", max_size=80).map(str.encode))
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    for prefix in (b"", b"---\nname: item-qa\ndescription: D\n"):
        _, problems = parse_skill(PATH, prefix + data)
        assert all(problem.code for problem in problems)


@pytest.mark.parametrize(
    ("front", "description"),
    [
        ("description: >-\n  long: a: b\n  and more\nbroken: x: y", "long: a: b and more"),
        ("description: |\n  line: one: two\n\tline two", "line: one: two line two"),
        ("description: >\n  one\n\n  two: b: c\n\tx", "one two: b: c x"),
        (
            "description: Use: this: x\n  and: more text\n  to the end",
            "Use: this: x and: more text to the end",
        ),
        ("description: Use: this: x\nand what stands below it", "Use: this: x and what stands below it"),
        ("description:\n  Use this: when: x\n  # a remark\n  and y", "Use this: when: x and y"),
        ('description: "in quotes\n  on two lines"\nbroken: x: y', "in quotes on two lines"),
        ("description: 'it's: broken'", "it's: broken"),
        ("description: [x](y) a link", "[x](y) a link"),
    ],
)
def test_a_description_keeps_its_text_where_the_front_matter_is_no_yaml(front: str, description: str) -> None:
    skill, problems = read(f"---\nname: item-qa\n{front}\nlicense: MIT\n---\nBody")
    assert skill is not None
    assert (skill.name, skill.description, skill.license) == ("item-qa", description, "MIT")
    assert "yaml_syntax" in [code for code, _ in problems]


@pytest.mark.parametrize(
    "tools", [" [Read, 'Bash(git add:*)']", "\n  - Read\n  - Bash(git add:*)", "\n- Read\n- Bash(git add:*)"]
)
def test_a_list_of_tools_is_read_beside_what_is_no_yaml(tools: str) -> None:
    skill, problems = read(f"---\nname: item-qa\ndescription: Use: this: x\nallowed-tools:{tools}\n---\nBody")
    assert skill is not None
    assert skill.allowed_tools == ("Read", "Bash(git add:*)")
    assert problems == [("yaml_syntax", 3), ("allowed_tools", 4)]


def test_metadata_beside_what_is_no_yaml_keeps_its_names_and_lines() -> None:
    front = "description: Use: this: x\nmetadata:\n  kind: strategy\n  note: a: b\n   and c\n  size: 3"
    skill, problems = read(f"---\nname: item-qa\n{front}\n---\nBody")
    assert skill is not None
    assert skill.metadata == {"kind": "strategy", "note": "a: b and c"}
    assert problems == [("yaml_syntax", 3), ("schema", 8)]


@pytest.mark.parametrize("text", ["0x_", "+_", "0b", "1_", "!!float nan", "!!int x"])
def test_what_only_looks_like_a_number_is_a_text(text: str) -> None:
    skill, problems = read(f"---\nname: item-qa\ndescription: {text}\n---\nBody")
    assert [code for code, _ in problems] == ([] if skill else ["schema"])
    assert skill is None or skill.description == text.rpartition(" ")[2]


def test_numbers_of_thousands_of_digits_are_texts() -> None:
    skill, problems = read(
        f"---\nname: item-qa\ndescription: {'1' * 1020}\nmetadata: {{a: 0x{'f' * 9999}}}\n---\nBody"
    )
    assert skill is not None
    assert problems == []


@pytest.mark.parametrize(
    ("escape", "kept", "codes"),
    [
        (r"a\0b", "a\ufffdb", ["yaml_character"]),
        (r"a\x00b", "a\ufffdb", ["yaml_character"]),
        (r"\uD800 b", "\ufffd b", ["yaml_character"]),
        (r"\uDE00\uD83D", "\ufffd\ufffd", ["yaml_character"]),
        (r"\uD83D\uDE00", "😀", []),
        (r"\u0041\\0", r"A\0", []),
    ],
)
def test_escapes_of_what_no_text_can_have_are_told_and_replaced(
    escape: str, kept: str, codes: list[str]
) -> None:
    front = f'description: "{escape}"\nmetadata: {{"k{escape}": "{escape}"}}'
    skill, problems = read(f"---\nname: item-qa\n{front}\n---\nBody")
    assert skill is not None
    assert (skill.description, skill.metadata) == (kept, {f"k{kept}": kept})
    assert problems == [(code, line) for line in (3, 4) for code in codes]
