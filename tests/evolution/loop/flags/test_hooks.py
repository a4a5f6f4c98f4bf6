import pytest

from evolution.loop.flags import Flag, FlagKind, find_flags
from evolution.loop.flags.hooks import is_conjunct, is_disjunct
from tests.evolution.loop.flags.changing import BASE, LENGTH, PLATFORM, flag


def hook(
    check: str, *, event: str = "reply", when: str = "", fail: str = "{action: block, reply: no}"
) -> bytes:
    condition = f"when: {when}\n" if when else ""
    return f"name: h\nevent: {event}\n{condition}check: {check}\non_fail: {fail}\n".encode()


def compared(old: bytes, new: bytes) -> list[tuple[FlagKind, str]]:
    return [(one.kind, one.detail) for one in find_flags({"hooks/h.yaml": old}, {"hooks/h.yaml": new})]


def test_a_deleted_hook_is_flagged_and_a_moved_one_is_not() -> None:
    assert flag({PLATFORM: None}) == [Flag(PLATFORM, "old", 1, FlagKind.HOOK_REMOVED, "no_off_platform")]
    assert flag({PLATFORM: None, "hooks/other.yaml": BASE[PLATFORM]}) == []


def test_a_hook_in_a_file_that_is_not_read_is_gone() -> None:
    assert [one.kind for one in flag({PLATFORM: None, f"{PLATFORM}.bak": BASE[PLATFORM]})] == [
        FlagKind.HOOK_REMOVED
    ]


def test_lines_are_those_of_what_changed() -> None:
    assert flag({LENGTH: ("characters: 220", "characters: 900")}) == [
        Flag(LENGTH, "new", 4, FlagKind.CHECK_LOOSENED, "characters: 220 → 900")
    ]
    assert flag({PLATFORM: ("'微信号', ", "")}) == [
        Flag(PLATFORM, "old", 6, FlagKind.CHECK_LOOSENED, "微信号")
    ]


FORBID = "{kind: forbid, patterns: [a, b]}"
CEL = "{cel: 'size(reply) < 9'}"
SCHEMA = "{schema: {type: object, required: [id], properties: {id: {type: integer, maximum: 9}}}}"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (hook(FORBID), hook(FORBID, event="tool_call"), (FlagKind.HOOK_NARROWED, "event: reply → tool_call")),
        (hook(FORBID), hook(FORBID, when="turn > 3"), (FlagKind.HOOK_NARROWED, "when: − → turn > 3")),
        (
            hook(FORBID, when="turn > 1"),
            hook(FORBID, when="turn > 1 && turn < 3"),
            (FlagKind.HOOK_NARROWED, "when: turn > 1 → turn > 1 && turn < 3"),
        ),
        (
            hook(FORBID, when="turn > 1"),
            hook(FORBID, when="turn == 2"),
            (FlagKind.HOOK_CHANGED, "when: turn > 1 → turn == 2"),
        ),
        (hook(FORBID), hook(FORBID, fail="{action: warn}"), (FlagKind.HOOK_SOFTENED, "block → warn")),
        (hook(FORBID), hook("{kind: forbid, patterns: [a]}"), (FlagKind.CHECK_LOOSENED, "b")),
        (
            hook(FORBID),
            hook("{kind: max_length, characters: 9}"),
            (FlagKind.HOOK_CHANGED, "check: forbid → max_length"),
        ),
        (
            hook("{kind: no_promise}"),
            hook("{kind: no_promise, allow: [best]}"),
            (FlagKind.CHECK_LOOSENED, "allow + best"),
        ),
        (
            hook(CEL),
            hook("{cel: 'size(reply) < 9 || true'}"),
            (FlagKind.CHECK_LOOSENED, "cel: size(reply) < 9 → size(reply) < 9 || true"),
        ),
        (
            hook("{regex: ok}"),
            hook("{regex: ok|fine}"),
            (FlagKind.CHECK_LOOSENED, "regex: ok → ok|fine"),
        ),
        (
            hook(SCHEMA),
            hook(SCHEMA.replace("required: [id], ", "")),
            (FlagKind.CHECK_LOOSENED, "required − id"),
        ),
        (
            hook(SCHEMA),
            hook(SCHEMA.replace("maximum: 9", "maximum: 99")),
            (FlagKind.CHECK_LOOSENED, "maximum: 9 → 99"),
        ),
        (hook(FORBID), b"name: [\n", (FlagKind.UNREADABLE, "h")),
    ],
)
def test_hooks_that_do_less_are_flagged(old: bytes, new: bytes, told: tuple[FlagKind, str]) -> None:
    assert compared(old, new) == [told]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (hook(FORBID, when="turn > 1"), hook(FORBID)),
        (hook(FORBID, when="turn > 1"), hook(FORBID, when="(turn > 1) || turn == 0")),
        (hook(FORBID, fail="{action: warn}"), hook(FORBID)),
        (hook(FORBID), hook("{kind: forbid, patterns: [a, b, c]}")),
        (hook(FORBID), hook("{kind: forbid, patterns: [a, 'b|c']}")),
        (hook("{kind: max_length, characters: 9}"), hook("{kind: max_length, characters: 8}")),
        (hook(CEL), hook("{cel: 'size(reply) < 9 && turn < 5'}")),
        (hook(SCHEMA), hook(SCHEMA.replace("maximum: 9", "maximum: 8"))),
        (hook("{kind: no_promise, allow: [best]}"), hook("{kind: no_promise}")),
    ],
)
def test_hooks_that_do_more_are_not(old: bytes, new: bytes) -> None:
    assert compared(old, new) == []


def test_conditions_are_taken_apart_at_the_outermost_operator() -> None:
    assert is_conjunct("(a || b) && c", "(a||b)".replace("||", " || "))
    assert not is_conjunct("a && b || c", "a")
    assert is_disjunct("a && b || c", "a && b")
    assert not is_disjunct("(a || b) && c", "a")
