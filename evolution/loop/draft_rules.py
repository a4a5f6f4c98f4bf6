"""What a model's draft may not do, though its files are sound: more than a proposal is, or what is for operators.

Decides purely, from files to sentences. People who edit by hand are not bound by it: they are reviewed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from evolution.loop.edits import Edits, apply_changes
from evolution.loop.rules import compare_rules
from harness_repo.format.harness import CONFIG
from harness_repo.format.yamlfile import as_mapping, read_yaml

# Of one draft: files that it leaves behind changed, bytes of lines that were nowhere in them, and rules more.
MOST_FILES = 20
MOST_ADDED = 40_000
MOST_RULES = 40

# Of harness.yaml: what a draft may arrange, and what it may never touch; the rest, if it was named.
_FREE = frozenset({"prompt", "skill_folders"})
_NEVER = frozenset({"format", "name", "kind"})
# A word of every diagnosis, so it names no setting.
_COMMON = frozenset({"model"})
_TOOL_FILE = re.compile(r"tools/[^/]+\.ya?ml")
_FIXTURE = {"kind": "fixture"}


@dataclass(frozen=True)
class Wanted:
    """What a draft was asked to do: the blamed path and all sentences of diagnosis and reviewers."""

    path: str
    texts: tuple[str, ...]

    def names(self, words: Sequence[str]) -> bool:
        """Whether harness.yaml is spoken of, and one of the words."""
        said = "\n".join([self.path, *self.texts])
        return CONFIG in said and any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said) for word in words)


def find_draft_faults(
    base: Mapping[str, bytes], before: Mapping[str, bytes], edits: Edits, wanted: Wanted
) -> list[str]:
    """What stands against a draft, as sentences for people and the model; empty for nothing.

    `base` is what the proposal starts from, `before` what is on its branch.
    """
    after = apply_changes(before, edits)
    if after == dict(base):
        return [_("nothing is left of the proposal: reject it instead")]
    if is_white_space_only(before, after):
        return [_("only white space changes")]
    return [
        *_size_faults(base, before, after),
        *_setting_faults(before, after, wanted),
        *_source_faults(before, after),
    ]


def is_white_space_only(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bool:
    """Whether all that differs is white space, and in YAML means the same."""
    return all(
        _is_same_but_space(path, before.get(path), after.get(path)) for path in _touched(before, after)
    )


def _touched(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _is_same_but_space(path: str, old: bytes | None, new: bytes | None) -> bool:
    if old is None or new is None or old.split() != new.split():
        return False
    return not path.endswith((".yaml", ".yml")) or _read(path, old) == _read(path, new)


def _size_faults(
    base: Mapping[str, bytes], before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> Iterator[str]:
    touched = _touched(before, after)
    left = sum(path in after for path in touched)
    if left > MOST_FILES:
        yield _("it changes %(count)d files; %(most)d at most") % {"count": left, "most": MOST_FILES}
    added = _count_added(before, after, touched)
    if added > MOST_ADDED:
        values = {"count": added, "most": MOST_ADDED}
        yield _("it adds %(count)d bytes; %(most)d at most: mend the kind of failure, not each case") % values
    rules = len(compare_rules(base, after).added)
    if rules > MOST_RULES:
        yield _("it adds %(count)d rules; %(most)d at most") % {"count": rules, "most": MOST_RULES}


def _count_added(before: Mapping[str, bytes], after: Mapping[str, bytes], touched: Sequence[str]) -> int:
    """Bytes of the lines that no touched file had; what is only moved counts for nothing."""
    old = Counter(line for path in touched for line in before.get(path, b"").splitlines())
    new = Counter(line for path in touched for line in after.get(path, b"").splitlines())
    return sum(len(line) * count for line, count in (new - old).items())


def _setting_faults(before: Mapping[str, bytes], after: Mapping[str, bytes], wanted: Wanted) -> Iterator[str]:
    """Settings of harness.yaml that the draft changes, and nobody named."""
    old, new = _read(CONFIG, before.get(CONFIG)), _read(CONFIG, after.get(CONFIG))
    for key in sorted({*old, *new} - _FREE):
        if old.get(key) == new.get(key):
            continue
        if key in _NEVER:
            yield _("%(key)s of harness.yaml is not for a draft to change") % {"key": key}
        elif not wanted.names(_words_for(key, old.get(key), new.get(key))):
            yield _("%(key)s of harness.yaml stays: neither diagnosis nor reviewer names it") % {"key": key}


def _words_for(key: str, old: Any, new: Any) -> list[str]:
    """What names a setting: its key, or those of its values that change."""
    was, now = as_mapping(old), as_mapping(new)
    inner = [str(name) for name in {*was, *now} if was.get(name) != now.get(name)]
    return inner if key in _COMMON else [key, *inner]


def _source_faults(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[str]:
    """Tools whose source is another one than it was, and new ones that reach out."""
    old = {path: _read(path, before[path]) for path in sorted(before) if _TOOL_FILE.fullmatch(path)}
    by_name = {str(tool.get("name")): tool for tool in old.values()}
    gone = [tool.get("source") for path, tool in old.items() if path not in after]
    for path in _touched(before, after):
        if path not in after or not _TOOL_FILE.fullmatch(path):
            continue
        tool = _read(path, after[path])
        source, known = tool.get("source"), old.get(path) or by_name.get(str(tool.get("name")))
        if known is not None and source != known.get("source"):
            yield _("%(path)s: the source of a tool is the operator's to change") % {"path": path}
        elif known is None and source not in gone and as_mapping(source or _FIXTURE).get("kind") != "fixture":
            yield _("%(path)s: a new tool has a source of kind fixture") % {"path": path}


def _read(path: str, data: bytes | None) -> dict[str, Any]:
    """The file's mapping; empty where there is none, which is a problem of its own."""
    read = read_yaml(path, data)[0] if data is not None else None
    return as_mapping(read.value) if read is not None else {}
