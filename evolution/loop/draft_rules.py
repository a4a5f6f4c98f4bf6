"""What a model's draft may not do, though its files are sound: more than a proposal is, or what is for operators.

Decides purely, from files to sentences. People who edit by hand are not bound by it: they are reviewed.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from evolution.loop.edits import Edits, apply_changes
from evolution.loop.rules import compare_rules
from harness_repo.format.harness import CONFIG
from harness_repo.format.yamlfile import as_mapping, read_yaml

# Of one draft: files that it changes, makes or deletes, bytes of lines that were nowhere in them, and rules more.
MOST_FILES = 20
MOST_ADDED = 40_000
MOST_RULES = 40

# Of harness.yaml: what a draft may arrange, and what it may never touch; the rest, if it was named.
_FREE = frozenset({"prompt", "skill_folders"})
_NEVER = frozenset({"format", "name", "kind"})
_SENTENCE = re.compile(r"[!?;。！？；\n]|\.(?=\s|$)")
# A sentence that says no: what it names is to stay.
_NO = re.compile(
    r"\b(?:don['’]?t|do not|never|leave|keep|stays?|remains?|untouched|unchanged|hands off"
    r"|as[ -](?:is|(?:it|that|this) (?:is|was)|they (?:are|were)))\b"
    r"|(?:\bnot|n['’]t|\bno need to) (?:be )?(?:chang|touch|edit|alter|rais|lower|increas|decreas|reduc|set)"
    r"|不要|保持|保留|维持|原样|照旧|勿|不[许得用必应该可能]*再?[动改变碰调]"
    r"|(?<![特分级类区个性识差派告辨])别(?![的人名处称])",
    re.IGNORECASE,
)
_TOOL_FILE = re.compile(r"tools/[^/]+\.ya?ml")
_FIXTURE = {"kind": "fixture"}


@dataclass(frozen=True)
class Wanted:
    """What a draft was asked to do: the blamed path, the changes of the diagnosis, and what reviewers say themselves.

    Quoted lines are no wish, nor is what the hypothesis tells of the cases, nor a sentence that says no.
    """

    path: str
    texts: Sequence[str]
    # comments at lines of harness.yaml
    at_config: Sequence[str] = ()

    def names(self, setting: Sequence[str]) -> bool:
        """Whether a setting of harness.yaml, as its keys from the outermost, is named.

        Where that file is blamed or commented on, by its own key; else in one sentence with the file, in full
        (`limits.turns`, or both words).
        """
        said = _list_wishes(self.texts)
        about = [sentence for sentence in said if CONFIG in sentence]
        there = [*_list_wishes(self.at_config), *(said if self.path == CONFIG else ())]
        return any(all(map(_has_word(sentence), setting)) for sentence in about) or any(
            _has_word(sentence)(setting[-1]) for sentence in there
        )


def _list_wishes(texts: Sequence[str]) -> list[str]:
    sentences = [sentence for text in texts for sentence in _SENTENCE.split(text)]
    return [sentence for sentence in sentences if not _NO.search(sentence)]


def _has_word(sentence: str) -> Callable[[str], bool]:
    # Chinese writes no spaces, so only Latin letters go on with a word.
    return lambda word: bool(re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", sentence))


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
    if old is None or new is None or _visible_words(old) != _visible_words(new):
        return False
    return not path.endswith((".yaml", ".yml")) or _read(path, old) == _read(path, new)


def _visible_words(data: bytes) -> list[str]:
    """The words of a text, without characters that take no room: zero-width ones, marks of direction."""
    words = data.decode("utf-8", "surrogateescape").split()
    seen = ("".join(each for each in word if unicodedata.category(each) != "Cf") for word in words)
    return [word for word in seen if word]


def _size_faults(
    base: Mapping[str, bytes], before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> Iterator[str]:
    touched = _touched(before, after)
    made = {after[path] for path in touched if path in after}
    # A file that moves counts once.
    count = sum(path in after or before[path] not in made for path in touched)
    if count > MOST_FILES:
        yield _("it changes %(count)d files; %(most)d at most") % {"count": count, "most": MOST_FILES}
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
            continue
        for setting in _changed_settings(key, old.get(key), new.get(key)):
            if not wanted.names(setting):
                name = ".".join(setting)
                yield _("%(key)s of harness.yaml stays: neither diagnosis nor reviewer names it") % {
                    "key": name
                }


def _changed_settings(key: str, old: Any, new: Any) -> list[tuple[str, ...]]:
    """The keys of each value that changes, from the outermost."""
    was, now = as_mapping(old), as_mapping(new)
    inner = sorted(str(name) for name in {*was, *now} if was.get(name) != now.get(name))
    return [(key, name) for name in inner] or [(key,)]


def _source_faults(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[str]:
    """Tools whose source is another one than it was, and new ones that reach out."""
    old = {path: _read(path, before[path]) for path in sorted(before) if _TOOL_FILE.fullmatch(path)}
    by_name = {str(tool.get("name")): tool for tool in old.values()}
    names = {str(_read(path, after[path]).get("name")) for path in after if _TOOL_FILE.fullmatch(path)}
    gone = [tool for path, tool in old.items() if path not in after and str(tool.get("name")) not in names]
    for path in _touched(before, after):
        if path not in after or not _TOOL_FILE.fullmatch(path):
            continue
        tool = _read(path, after[path])
        source, known = tool.get("source"), old.get(path) or by_name.get(str(tool.get("name")))
        known = known or _take_renamed(tool, gone)
        if known is not None and source != known.get("source"):
            yield _("%(path)s: the source of a tool is the operator's to change") % {"path": path}
        elif known is None and as_mapping(source or _FIXTURE).get("kind") != "fixture":
            yield _("%(path)s: a new tool has a source of kind fixture") % {"path": path}


def _take_renamed(tool: Mapping[str, Any], gone: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The tool that goes away and has another name now: what it is given and where it asks are the same."""
    same = [each for each in gone if all(each.get(key) == tool.get(key) for key in ("parameters", "source"))]
    if not same:
        return None
    gone.remove(same[0])
    return same[0]


def _read(path: str, data: bytes | None) -> dict[str, Any]:
    """The file's mapping; empty where there is none, which is a problem of its own."""
    read = read_yaml(path, data)[0] if data is not None else None
    return as_mapping(read.value) if read is not None else {}
