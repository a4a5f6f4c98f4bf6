"""What a model's draft may not do, though its files are sound."""

import pytest

from evolution.loop.draft_rules import MOST_ADDED, MOST_FILES, MOST_RULES, Wanted, find_draft_faults
from evolution.prompts.feedback import own_words
from harness_repo.starters import starter_files
from tests.evolution.intake import SKILL

BASE = starter_files("live_commerce")
CONFIG = BASE["harness.yaml"]
NOBODY = Wanted(SKILL, ("the model makes too many turns",))
TOOL = next(path for path in sorted(BASE) if path.startswith("tools/"))
HTTP = b"source: {kind: http, method: GET, url: 'https://example.invalid/x'}\n"
FIXTURE = b"source: {kind: fixture}\n"

Edits = dict[str, bytes | None]


def faults(edits: Edits, wanted: Wanted = NOBODY, before: dict[str, bytes] | None = None) -> str:
    return "\n".join(find_draft_faults(BASE, before or BASE, edits, wanted))


def test_a_small_edit_of_a_skill_is_no_fault() -> None:
    assert faults({SKILL: BASE[SKILL] + b"- one more\n"}) == ""


@pytest.mark.parametrize(
    "edits",
    [
        {SKILL: BASE[SKILL] + b"\n\n"},
        {SKILL: BASE[SKILL].replace(b"\n", b"\r\n")},
        {SKILL: BASE[SKILL].replace(b"- ", "-\N{NO-BREAK SPACE}\N{ZERO WIDTH SPACE}".encode())},
        {"harness.yaml": CONFIG.replace(b"turns: 8, tool_calls", b"turns:  8,  tool_calls")},
    ],
)
def test_white_space_alone_is_a_fault(edits: Edits) -> None:
    assert faults(edits) == "only white space changes"


def test_yaml_that_means_something_else_is_more_than_white_space() -> None:
    before = {**BASE, "hooks/x.yaml": b"a:\n  b: 1\nc: 2\n"}
    assert faults({"hooks/x.yaml": b"a:\n  b: 1\n  c: 2\n"}, before=before) == ""


def test_a_draft_that_takes_all_back_says_so() -> None:
    before = {**BASE, SKILL: BASE[SKILL] + b"- drafted\n"}
    assert "nothing is left" in faults({SKILL: BASE[SKILL]}, before=before)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"turns: 8", b"turns: 80", "limits.turns of harness.yaml stays"),
        (b"temperature: 0", b"temperature: 1", "model.temperature of harness.yaml stays"),
        (b"reply_skill_required: true", b"reply_skill_required: false", "reply_skill_required"),
        (b"name: live_commerce", b"name: other", "name of harness.yaml is not for a draft"),
        (b"kind: agent", b"kind: judge", "kind of harness.yaml is not for a draft"),
    ],
)
def test_settings_stay_unless_somebody_names_them(old: bytes, new: bytes, said: str) -> None:
    assert said in faults({"harness.yaml": CONFIG.replace(old, new)})


@pytest.mark.parametrize(
    ("wanted", "old", "new"),
    [
        (Wanted("harness.yaml", ("raise turns to 80",)), b"turns: 8", b"turns: 80"),
        (Wanted(SKILL, ("把 harness.yaml 的 limits.turns 提高",)), b"turns: 8", b"turns: 80"),
        (Wanted("harness.yaml", ("temperature 调低",)), b"temperature: 0", b"temperature: 1"),
        (Wanted(SKILL, ("Raise turns, among the limits of harness.yaml.",)), b"turns: 8", b"turns: 80"),
        (Wanted(SKILL, (), ("raise turns to 80",)), b"turns: 8", b"turns: 80"),
        (Wanted(SKILL, (), ("raise turns to 80; leave the rest",)), b"turns: 8", b"turns: 80"),
        (Wanted(SKILL, ("特别是 harness.yaml 的 limits.turns 不够，请提高",)), b"turns: 8", b"turns: 80"),
    ],
)
def test_settings_that_are_named_may_change(wanted: Wanted, old: bytes, new: bytes) -> None:
    assert faults({"harness.yaml": CONFIG.replace(old, new)}, wanted) == ""


def test_the_word_model_names_no_parameter() -> None:
    wanted = Wanted("harness.yaml", ("the model overlooks the last section",))
    assert "model" in faults({"harness.yaml": CONFIG.replace(b"temperature: 0", b"temperature: 1")}, wanted)


@pytest.mark.parametrize(
    "texts",
    [
        (
            "After two turns the agent forgets the order.",
            "Add the section to the prompt list of harness.yaml.",
        ),
        ("harness.yaml: raise limits.seconds.", "limits.turns is too low"),
        ("[harness.yaml:7] > limits: {turns: 8}\nanna: leave this as it is",),
        ("[harness.yaml:7] > limits: {turns: 8}\nanna: leave the turns as they are",),
        ("Don't touch limits.turns of harness.yaml",),
        ("The limits.turns of harness.yaml should not be raised.",),
        ("Keep limits.turns of harness.yaml at 8",),
        ("harness.yaml 的 limits.turns 不要改",),
        ("harness.yaml 的 limits.turns 请保持",),
        ("别动 harness.yaml 的 limits.turns",),
        ("harness.yaml 的 limits.turns 不动",),
    ],
)
def test_an_everyday_word_or_a_quoted_line_names_no_setting(texts: tuple[str, ...]) -> None:
    words, comments = own_words("\n\n".join(texts), "harness.yaml")
    wanted = Wanted("prompts/x.md", words, comments)
    assert "limits.turns" in faults({"harness.yaml": CONFIG.replace(b"turns: 8", b"turns: 80")}, wanted)


def test_only_the_named_setting_of_a_block_may_change() -> None:
    wanted = Wanted(SKILL, ("Set limits.turns of harness.yaml to 80.",))
    edited = CONFIG.replace(b"turns: 8, tool_calls: ", b"turns: 80, tool_calls: 9")
    assert edited != CONFIG
    assert faults({"harness.yaml": edited}, wanted).startswith("limits.tool_calls of harness.yaml stays")


def test_prompt_sections_may_be_arranged() -> None:
    lines = CONFIG.splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b"name: faq" in line)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    assert faults({"harness.yaml": b"".join(lines)}) == ""


def test_the_source_of_a_tool_stays() -> None:
    assert "operator" in faults({TOOL: BASE[TOOL].replace(FIXTURE, HTTP)})
    assert faults({TOOL: BASE[TOOL].replace(b"After-sales", b"Our after-sales", 1)}) == ""


def test_a_new_tool_reaches_out_nowhere() -> None:
    made = BASE[TOOL].replace(b"name: get", b"name: fetch", 1)
    assert faults({"tools/new.yaml": made}) == ""
    assert "kind fixture" in faults({"tools/new.yaml": made.replace(FIXTURE, HTTP)})


def test_a_tool_that_moves_takes_its_source_along() -> None:
    before = {**BASE, TOOL: BASE[TOOL].replace(FIXTURE, HTTP)}
    renamed = before[TOOL].replace(b"name: get", b"name: fetch", 1)
    assert faults({TOOL: None, "tools/moved.yaml": renamed}, before=before) == ""
    assert "operator" in faults({TOOL: None, "tools/moved.yaml": BASE[TOOL]}, before=before)
    assert "kind fixture" in faults({"tools/copy.yaml": renamed}, before=before)


def test_a_source_goes_to_one_tool_that_is_given_the_same() -> None:
    before = {**BASE, TOOL: BASE[TOOL].replace(FIXTURE, HTTP)}
    renamed = before[TOOL].replace(b"name: get", b"name: fetch", 1)
    other = renamed.replace(b"type: object", b"type: object\n  title: x", 1)
    assert other != renamed
    assert "kind fixture" in faults({TOOL: None, "tools/a.yaml": other}, before=before)
    twice = {TOOL: None, "tools/a.yaml": renamed, "tools/b.yaml": renamed.replace(b"fetch", b"bring", 1)}
    assert "tools/b.yaml: a new tool has a source of kind fixture" in faults(twice, before=before)
    beside = {TOOL: None, "tools/a.yaml": before[TOOL], "tools/b.yaml": renamed}
    assert "tools/b.yaml: a new tool has a source of kind fixture" in faults(beside, before=before)


def test_deleted_files_count() -> None:
    many = {**BASE, **{f"skills/s{n}/SKILL.md": b"%d\n" % n for n in range(MOST_FILES + 1)}}
    edits: Edits = dict.fromkeys(many.keys() - BASE.keys())
    assert "files; " in faults({**edits, SKILL: BASE[SKILL] + b"- x\n"}, before=many)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({SKILL: BASE[SKILL] + b"x" * (MOST_ADDED + 1)}, "bytes"),
        ({f"{SKILL[:-8]}notes/{n}.md": b"x\n" for n in range(MOST_FILES + 1)}, "files"),
        ({SKILL: BASE[SKILL] + b"".join(b"- rule number %d\n" % n for n in range(MOST_RULES + 1))}, "rules"),
    ],
)
def test_a_draft_has_a_size(edits: Edits, said: str) -> None:
    assert f"{said}; " in faults(edits)


def test_what_is_only_moved_adds_nothing() -> None:
    long = {**BASE, "skills/a/notes.md": b"line\n" * MOST_ADDED}
    assert (
        faults({"skills/a/notes.md": None, "skills/b/notes.md": long["skills/a/notes.md"]}, before=long) == ""
    )


def test_all_faults_are_said_at_once() -> None:
    edits: Edits = {
        "harness.yaml": CONFIG.replace(b"turns: 8", b"turns: 80"),
        TOOL: BASE[TOOL].replace(FIXTURE, HTTP),
    }
    assert len(faults(edits).splitlines()) == 2
