import pytest

from evolution.loop.flags import Flag, FlagKind
from tests.evolution.loop.flags.changing import flag

CONFIG = "harness.yaml"


@pytest.mark.parametrize(
    ("old", "new", "line", "kind", "detail"),
    [
        ("turns: 8", "turns: 80", 5, FlagKind.LIMIT_CHANGED, "turns: 8 → 80"),
        ("hook_retries: 2", "hook_retries: 0", 5, FlagKind.LIMIT_CHANGED, "hook_retries: 2 → 0"),
        ("temperature: 0", "temperature: 1", 4, FlagKind.MODEL_CHANGED, "temperature: 0 → 1"),
        (
            "reply_skill_required: true",
            "reply_skill_required: false",
            14,
            FlagKind.SETTING_CHANGED,
            "reply_skill_required: true → false",
        ),
        (
            "constraints, file: prompts/constraints.md}",
            "constraints, file: prompts/constraints.md, role: user}",
            12,
            FlagKind.SETTING_CHANGED,
            "constraints: system → user",
        ),
    ],
)
def test_wider_settings_are_flagged_at_their_lines(
    old: str, new: str, line: int, kind: FlagKind, detail: str
) -> None:
    assert flag({CONFIG: (old, new)}) == [Flag(CONFIG, "new", line, kind, detail)]


@pytest.mark.parametrize(("old", "new"), [("turns: 8", "turns: 6"), ("name: live_commerce", "name: shop")])
def test_narrower_ones_are_not(old: str, new: str) -> None:
    assert flag({CONFIG: (old, new)}) == []


def test_a_section_that_is_left_out_is_flagged_where_it_stood() -> None:
    entry = "  - {name: constraints, file: prompts/constraints.md}\n"
    assert flag({CONFIG: (entry, "")}) == [
        Flag(CONFIG, "old", 12, FlagKind.SECTION_REMOVED, "prompts/constraints.md")
    ]


def test_a_file_that_is_no_yaml_any_more_is_flagged() -> None:
    assert [one.kind for one in flag({CONFIG: "x: : :\n"})] == [FlagKind.UNREADABLE]
