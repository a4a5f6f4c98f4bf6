"""Flags hooks that check less than they did, check it less often, or do less about it."""

from collections.abc import Iterator, Mapping
from typing import Any

from evolution.loop.flags.changes import FileChange
from evolution.loop.flags.flag import Flag, FlagKind
from evolution.loop.flags.reading import Part, read_part
from evolution.loop.flags.schemas import find_loosened, is_number, shorten
from harness_repo.format.hooks import parse_hook
from harness_repo.format.yamlfile import as_list, as_mapping
from harness_repo.format.yamlnodes import Location

# How much an action does about what it finds.
_STRENGTH = {"warn": 1, "rewrite": 2, "retry": 2, "block": 3}
# Lists of a check: whether what is taken out of them, or what is put in, makes it looser.
_LOOSER_WITHOUT = ("patterns", "phrases")
_LOOSER_WITH = ("allow", "skills")


def flag_hook(change: FileChange, head: Mapping[str, bytes]) -> Iterator[Flag]:
    """The flags of a changed hooks/*.yaml; `head` tells whether a hook that is gone stands elsewhere."""
    old = read_part(change.old_path, change.old_data, "old")
    new = read_part(change.new_path, change.new_data)
    if not old.values:
        return
    name = str(old.values.get("name") or "")
    if not is_hook_path(change.new_path):
        if not _stands_elsewhere(old.values, head):
            yield old.flag((), FlagKind.HOOK_REMOVED, name)
        return
    if _is_usable(change.old_path, change.old_data) and not _is_usable(change.new_path, change.new_data):
        yield new.flag((), FlagKind.UNREADABLE, name)
        return
    yield from _Comparison(old, new).flags()


def is_hook_path(path: str) -> bool:
    """Whether a harness reads a hook from the path."""
    return path.startswith("hooks/") and path.count("/") == 1 and path.endswith((".yaml", ".yml"))


def _is_usable(path: str, data: bytes) -> bool:
    return parse_hook(path, data)[0] is not None


def _stands_elsewhere(values: Mapping[str, Any], head: Mapping[str, bytes]) -> bool:
    rest = {key: value for key, value in values.items() if key not in {"name", "description"}}
    others = (read_part(path, data).values for path, data in head.items() if is_hook_path(path))
    return any(rest == {key: other.get(key) for key in rest} for other in others)


class _Comparison:
    """A hook before and after."""

    def __init__(self, old: Part, new: Part) -> None:
        self.old = old
        self.new = new

    def flags(self) -> Iterator[Flag]:
        before, after = self.old.values, self.new.values
        if before.get("event") != after.get("event"):
            detail = f"event: {before.get('event')} → {after.get('event')}"
            yield self._flag(("event",), FlagKind.HOOK_NARROWED, detail)
        yield from self._condition(before.get("when"), after.get("when"))
        yield from self._check(as_mapping(before.get("check")), as_mapping(after.get("check")))
        yield from self._reaction(as_mapping(before.get("on_fail")), as_mapping(after.get("on_fail")))

    def _condition(self, before: Any, after: Any) -> Iterator[Flag]:
        """A condition that is new or holds less often; one that is only another may do either."""
        if before == after or after is None:
            return
        detail = f"when: {'−' if before is None else shorten(before)} → {shorten(after)}"
        if before is None or is_conjunct(after, before):
            yield self._flag(("when",), FlagKind.HOOK_NARROWED, detail)
        elif not is_disjunct(after, before):
            yield self._flag(("when",), FlagKind.HOOK_CHANGED, detail)

    def _check(self, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Flag]:
        if _kind_of(before) != _kind_of(after):
            detail = f"check: {_kind_of(before)} → {_kind_of(after)}"
            yield self._flag(("check",), FlagKind.HOOK_CHANGED, detail)
            return
        yield from self._lists(before, after)
        yield from self._figures(before, after)
        if isinstance(before.get("schema"), dict):
            for at, detail in find_loosened(before["schema"], after.get("schema")):
                yield self._flag(("check", "schema", *at), FlagKind.CHECK_LOOSENED, detail)
        for key in ("cel", "regex"):
            old, new = before.get(key), after.get(key)
            if old != new and not (key == "cel" and is_conjunct(new, old)):
                is_looser = is_disjunct(new, old) or (key == "regex" and is_alternative(new, old))
                kind = FlagKind.CHECK_LOOSENED if is_looser else FlagKind.HOOK_CHANGED
                yield self._flag(("check", key), kind, f"{key}: {shorten(old)} → {shorten(new)}")

    def _lists(self, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Flag]:
        for key in _LOOSER_WITHOUT:
            kept = as_list(after.get(key))
            for number, value in enumerate(as_list(before.get(key))):
                # One that finds all that, and more.
                if value not in kept and not any(is_alternative(one, value) for one in kept):
                    yield self.old.flag(("check", key, number), FlagKind.CHECK_LOOSENED, shorten(value))
        for key in _LOOSER_WITH:
            known = as_list(before.get(key))
            for number, value in enumerate(as_list(after.get(key))):
                if value not in known and (known or key == "allow"):
                    detail = f"{key} + {shorten(value)}"
                    yield self._flag(("check", key, number), FlagKind.CHECK_LOOSENED, detail)

    def _figures(self, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Flag]:
        old, new = before.get("characters"), after.get("characters")
        if is_number(old) and is_number(new) and new > old:
            detail = f"characters: {old} → {new}"
            yield self._flag(("check", "characters"), FlagKind.CHECK_LOOSENED, detail)
        if before.get("skill_kind") and before.get("skill_kind") != after.get("skill_kind"):
            detail = f"skill_kind: {before['skill_kind']} → {after.get('skill_kind', '−')}"
            yield self._flag(("check", "skill_kind"), FlagKind.CHECK_LOOSENED, detail)

    def _reaction(self, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Flag]:
        old, new = str(before.get("action")), str(after.get("action"))
        if _STRENGTH.get(new, 0) < _STRENGTH.get(old, 0):
            yield self._flag(("on_fail", "action"), FlagKind.HOOK_SOFTENED, f"{old} → {new}")
        kept = as_list(after.get("substitute"))
        for number, entry in enumerate(as_list(before.get("substitute"))):
            if entry not in kept:
                yield self.old.flag(("on_fail", "substitute", number), FlagKind.HOOK_SOFTENED, shorten(entry))

    def _flag(self, at: Location, kind: FlagKind, detail: str) -> Flag:
        """Beside what is there now; beside what was there, where it is gone."""
        is_there = self.new.has(at) or not self.old.has(at)
        return (self.new if is_there else self.old).flag(at, kind, detail)


def _kind_of(check: Mapping[str, Any]) -> str:
    return str(check.get("kind") or next((key for key in ("cel", "regex", "schema") if key in check), "−"))


def is_conjunct(new: Any, old: Any) -> bool:
    """Whether a CEL condition is the old one and something more."""
    return _is_joined(new, old, "&&")


def is_disjunct(new: Any, old: Any) -> bool:
    """Whether a CEL condition is the old one or something else."""
    return _is_joined(new, old, "||")


def is_alternative(new: Any, old: Any) -> bool:
    """Whether a pattern is the old one or another, at its outermost."""
    if not isinstance(new, str) or not isinstance(old, str) or new == old:
        return isinstance(new, str) and new == old
    return old in _split(new, "|")


def _is_joined(new: Any, old: Any, operator: str) -> bool:
    if not isinstance(new, str) or not isinstance(old, str):
        return False
    other = "||" if operator == "&&" else "&&"
    parts = [_bare(part) for part in _split(new, operator)]
    # A looser operator at the outermost level would bind the rest otherwise.
    return len(parts) > 1 and _bare(old) in parts and (operator == "||" or len(_split(new, other)) == 1)


def _split(text: str, operator: str) -> list[str]:
    """The text at the operator where no parenthesis is open."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and text.startswith(operator, at) and at >= start:
            parts.append(text[start:at])
            start = at + len(operator)
    return [*parts, text[start:]]


def _bare(text: str) -> str:
    """The expression without white space and parentheses around it."""
    text = " ".join(text.split())
    while _is_wrapped(text):
        text = text[1:-1].strip()
    return text


def _is_wrapped(text: str) -> bool:
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for character in text[:-1]:
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return False
    return True
