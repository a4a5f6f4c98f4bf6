"""Flags what the harness no longer tells its agent, or tells it less strictly: rules that are gone or softened."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evolution.loop.flags.changes import FileChange
from evolution.loop.flags.flag import Flag, FlagKind
from evolution.loop.flags.reading import read_part
from evolution.loop.flags.schemas import shorten
from evolution.loop.rules import OBLIGATION, Rule, compare_rules, leave_out_taken_back
from harness_repo.format.yamlfile import as_mapping
from harness_repo.format.yamlnodes import Location

# Words that leave it to the agent, and that make an exception.
_LENIENT = re.compile(
    r"\b(?:may|might|can|could|try to|if possible|when possible|where possible|preferably|ideally|generally|usually|"
    r"normally|optional(?:ly)?|consider|unless|except|feel free|allowed to|at your discretion)\b"
    r"|尽量|尽可能|可以|一般|通常|最好|建议|酌情|视情况|除非|除了|例外|必要时|允许|原则上",
    re.IGNORECASE,
)
# Where a file of the folder has texts for the agent.
_MESSAGES: dict[str, tuple[Location, ...]] = {
    "hooks": (("on_fail", "message"), ("on_fail", "reply")),
    "tools": (("description",),),
}

# First letters by which a longer rule is found again, and how many that begin alike are looked at.
_BEGINNING = 4
_MOST_LONGER = 50
# "100. " and a few more
_LONGEST_SIGN = 8


def flag_rules(base: Mapping[str, bytes], head: Mapping[str, bytes]) -> Iterator[Flag]:
    """The rules of prompts and skills that the head has not, or in softer words."""
    changes = compare_rules(base, head)
    # A line below a list item without an indentation becomes a part of it: what it said is still there.
    longer = _by_beginning([*changes.added, *(new for _, new in changes.changed)])
    lines = {path: head[path].decode("utf-8", "replace").split("\n") for path, _ in longer}
    for rule in changes.removed:
        if _is_text(rule) and not _is_continued(rule, longer, lines.get(rule.path, [])):
            is_strict = OBLIGATION.search(rule.text) is not None
            kind = FlagKind.OBLIGATION_REMOVED if is_strict else FlagKind.RULE_REMOVED
            yield Flag(rule.path, "old", rule.line, kind, shorten(rule.text))
    for old, new in changes.changed:
        if new.condition and new.condition != old.condition:
            yield Flag(
                new.path, "new", new.line, FlagKind.RULE_CONDITIONAL, shorten(f"{new.condition} {new.text}")
            )
        detail = describe_softening(old.text, leave_out_taken_back(new.text)) if _is_text(new) else ""
        if detail:
            yield Flag(new.path, "new", new.line, FlagKind.OBLIGATION_SOFTENED, detail)


def flag_messages(change: FileChange) -> Iterator[Flag]:
    """What a hook or a tool tells the agent in softer words."""
    old = read_part(change.old_path, change.old_data, "old")
    new = read_part(change.new_path, change.new_data)
    for at in _MESSAGES[change.new_path.partition("/")[0]] if new.values else ():
        before, after = (_text_at(part.values, at) for part in (old, new))
        detail = describe_softening(before, after)
        if before and detail:
            yield new.flag(at, FlagKind.OBLIGATION_SOFTENED, detail)


def describe_softening(before: str, after: str) -> str:
    """What of a rule's strictness is lost in its new words, "" where nothing is."""
    lost = _counted(OBLIGATION, before) - _counted(OBLIGATION, after)
    came = _counted(OBLIGATION, after) - _counted(OBLIGATION, before)
    lenient = _counted(_LENIENT, after) - _counted(_LENIENT, before)
    # Another word of the same strictness is no softening.
    if lost.total() <= came.total() and not lenient:
        return ""
    return " ".join([*(f"− {word}" for word in lost), *(f"+ {word}" for word in [*came, *lenient])])


def _by_beginning(rules: Iterable[Rule]) -> dict[tuple[str, str], list[Rule]]:
    """The rules that are always said, by path and first letters."""
    found: dict[tuple[str, str], list[Rule]] = defaultdict(list)
    for rule in rules:
        if not rule.condition:
            found[rule.path, rule.text[:_BEGINNING]].append(rule)
    return found


def _is_continued(old: Rule, longer: Mapping[tuple[str, str], Sequence[Rule]], lines: Sequence[str]) -> bool:
    """Whether a rule that is gone is whole lines at the beginning of a longer one; inside one it is a mere mention."""
    near = longer.get((old.path, old.text[:_BEGINNING]), ())[:_MOST_LONGER]
    return any(_has_as_lines(lines, new, old.text) for new in near if new.text.startswith(old.text))


def _has_as_lines(lines: Sequence[str], new: Rule, text: str) -> bool:
    """Whether the text ends where a line of the rule's file ends, from the rule's first line on."""
    said: list[str] = []
    left = len(text)
    for at in range(new.line - 1, len(lines)):
        said.append(" ".join(lines[at].split()))
        left -= len(said[-1]) + 1
        if left <= 0:
            break
    start = " ".join(filter(None, said))
    # Before it stands the sign of the list's item.
    return start.endswith(text) and len(start) - len(text) <= _LONGEST_SIGN


def _is_text(rule: Rule) -> bool:
    """Hooks, tools and descriptions are looked at by what they do."""
    return not rule.name


def _counted(pattern: re.Pattern[str], text: str) -> Counter[str]:
    return Counter(" ".join(found.split()).casefold() for found in pattern.findall(text))


def _text_at(values: Mapping[str, Any], at: Location) -> str:
    value: Any = values
    for key in at:
        value = as_mapping(value).get(str(key))
    return value if isinstance(value, str) else ""
