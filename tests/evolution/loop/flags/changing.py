"""Changes of the starter harness, and what is flagged of them."""

from collections.abc import Mapping, Sequence

from evolution.loop.flags import Flag, FlagKind, find_flags
from harness_repo.starters import starter_files

BASE = dict(starter_files("live_commerce"))
CONSTRAINTS = "prompts/constraints.md"
PLATFORM = "hooks/no_off_platform.yaml"
LENGTH = "hooks/reply_length.yaml"
STOCK_TOOL = "tools/get_stock.yaml"
STOCK_SKILL = "skills/stock-qa/SKILL.md"
# The last line of the constraints, and its number.
LAST_RULE = "- 不要念出链接地址、商品编码这类内部信息。\n"
AFTER = BASE[CONSTRAINTS].decode().count("\n") + 1

# A text (old -> new), whole new content, or None for a file that is deleted.
Edit = tuple[str, str] | bytes | str | None


def edited(edits: Mapping[str, Edit], base: Mapping[str, bytes] = BASE) -> dict[str, bytes]:
    head = dict(base)
    for path, edit in edits.items():
        if edit is None:
            del head[path]
        elif isinstance(edit, tuple):
            text = head[path].decode()
            assert edit[0] in text
            head[path] = text.replace(*edit).encode()
        else:
            head[path] = edit if isinstance(edit, bytes) else edit.encode()
    return head


def flag(edits: Mapping[str, Edit], transcripts: Sequence[str] = ()) -> list[Flag]:
    return find_flags(BASE, edited(edits), transcripts)


def flag_line(line: str, transcripts: Sequence[str] = ()) -> list[tuple[FlagKind, str]]:
    """What is flagged of one line that is added to the constraints; all of it beside that line."""
    found = flag({CONSTRAINTS: (LAST_RULE, f"{LAST_RULE}{line}\n")}, transcripts)
    assert all((one.path, one.side, one.line) == (CONSTRAINTS, "new", AFTER) for one in found)
    return [(one.kind, one.detail) for one in found]


def kinds(edits: Mapping[str, Edit], transcripts: Sequence[str] = ()) -> list[FlagKind]:
    return [one.kind for one in flag(edits, transcripts)]
