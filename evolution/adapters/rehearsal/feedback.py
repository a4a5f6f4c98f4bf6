"""What a reviewer's feedback makes of the drafted changes: other words, fewer files, a hook, less text."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import HarnessView
from evolution.adapters.rehearsal.phrases import free_path
from evolution.adapters.rehearsal.rules import NEGATION
from evolution.adapters.rehearsal.sentences import Change
from evolution.adapters.rehearsal.shortening import shorten_sentence
from evolution.adapters.rehearsal.text import clip
from evolution.adapters.rehearsal.wording import listed, say
from harness_repo.format.skills import SKILL_FILE

USE_HOOK = re.compile(r"钩子|\bhooks?\b", re.IGNORECASE)
NO_HOOK = re.compile(
    r"(?:不要|不用|别用|去掉|删掉)[^，。]{0,4}钩子|\b(?:no|without an?|not an?|drop the) hooks?\b",
    re.IGNORECASE,
)
SHORTER = re.compile(
    r"精简|简短|简洁|短一?[点些]|更短|太长|缩短|\bshort(?:er|en)?\b|too long|concise|\bbrief", re.IGNORECASE
)
ONE_FILE = re.compile(
    r"(?:只|仅)[^，。；]{0,6}一个文件|一个文件就|(?:only|just)[^,.;]{0,16}\b(?:one|1|a single) file"
    r"|(?:one|a single) file only|\bin (?:one|a single) file",
    re.IGNORECASE,
)
ONLY_PATH = re.compile(
    r"(?:只|仅|only|just)[^，。,;]{0,16}?(?P<path>[\w-][\w./-]*\.(?:md|ya?ml))", re.IGNORECASE
)
_Q = r"[「“\"]([^」”\"]+)[」”\"]"
_INSTEAD = (
    re.compile(rf"[把将]?\s*{_Q}\s*(?:改成|换成|改为|换为|替换成|替换为)\s*{_Q}"),
    re.compile(rf"(?:change|replace|turn)\s+{_Q}\s+(?:to|with|by|into)\s+{_Q}", re.IGNORECASE),
)
_DROP = (
    re.compile(rf"(?:删掉|删除|删去|去掉|拿掉)\s*{_Q}"),
    re.compile(rf"(?:remove|drop|delete|take out)\s+{_Q}", re.IGNORECASE),
)
# A rule more, in the reviewer's own words.
_ADD = re.compile(
    r"(?:再?(?:加|添|补)(?:上|充)?一?[条句](?:规则)?|再?提醒一[句下])[\s:：,，]*(?P<rule>\S.+)"
    r"|\badd (?:a|the|one|another) (?:rule|line)(?: that|:)\s*(?P<said>\S.+)",
    re.IGNORECASE,
)
# One sentence, whatever stands in its quotes.
_SENTENCE = re.compile(r"(?:「[^」]*」|“[^”]*”|\"[^\"]*\"|[^。！？；!?;.\n]|\.(?!\s|$))+")
_POLITE = re.compile(r"[\W_]*(?:(?:谢谢|多谢|辛苦了?|thanks?(?: you)?|please|ok)[\W_]*)*", re.IGNORECASE)
LONGEST_RULE = 120


@dataclass(frozen=True)
class Wish:
    """A feedback with what it is about: the harness before the draft, and the file that the diagnosis blames."""

    text: str
    view: HarnessView
    blamed: str
    # the file that it is said of, empty for the whole draft
    at: str = ""


class NotUnderstood(Exception):
    """A reviewer's words ask for nothing that is known here; the message is those words."""


def heed(wish: Wish, changes: Sequence[Change]) -> list[Change]:
    """The changes as the reviewer wants them; raises NotUnderstood for words that ask for nothing known."""
    wanted, steps = list(changes), _steps(wish)
    if not steps:
        raise NotUnderstood(" ".join(wish.text.split()))
    for step in steps:
        wanted = step(wanted)
    return list(dict.fromkeys(wanted))


def list_unheeded(wish: Wish) -> list[str]:
    """The sentences of a reviewer that ask for nothing known; `heed` leaves them undone."""
    text = " ".join(wish.text.split())
    added = _ADD.search(text)
    # A rule that is asked for goes on to the end.
    end = added.start() if added else len(text)
    said = [found for found in _SENTENCE.finditer(text) if found.end() <= end]
    return [
        sentence
        for found in said
        if not _POLITE.fullmatch(sentence := found.group().strip())
        and not _steps(replace(wish, text=sentence))
    ]


def _steps(wish: Wish) -> list[Callable[[list[Change]], list[Change]]]:
    """What is understood of the words, in the order in which it is done."""
    steps: list[tuple[bool, Callable[[list[Change]], list[Change]]]] = [
        (_names_words(wish), lambda drafted: _use_words(wish, drafted)),
        (bool(NO_HOOK.search(wish.text)), lambda drafted: _as_rules(wish, drafted)),
        (_wants_hook(wish), lambda drafted: _as_hook(drafted, wish.view)),
        (_limits_files(wish), lambda drafted: _in_one_file(wish, drafted)),
        (bool(SHORTER.search(wish.text)), lambda drafted: _shorter(wish, drafted)),
        (bool(_ADD.search(wish.text)), lambda drafted: _with_rule(wish, drafted)),
    ]
    return [step for is_asked, step in steps if is_asked]


def _with_rule(wish: Wish, changes: list[Change]) -> list[Change]:
    """The rule that is asked for, where no quotes say it already; in the file that it is said of."""
    asked = _ADD.search(" ".join(wish.text.split()))
    if asked is None or _names_words(wish):
        return changes
    rule = clip(asked["rule"] or asked["said"], LONGEST_RULE).rstrip("…")
    if wish.at.endswith(f"/{SKILL_FILE}"):
        what = sentences.CAUTION if NEGATION.search(rule) else sentences.STATE
        return [*changes, Change(what, wish.at, rule)]
    path = wish.at if wish.at.startswith("prompts/") else wish.view.rules_path()
    return [*changes, Change("rule", path, rule)]


def _names_words(wish: Wish) -> bool:
    return bool(sentences.quoted(wish.text))


def _wants_hook(wish: Wish) -> bool:
    return bool(USE_HOOK.search(wish.text)) and not NO_HOOK.search(wish.text)


def _limits_files(wish: Wish) -> bool:
    return bool(ONE_FILE.search(wish.text) or ONLY_PATH.search(wish.text))


def _use_words(wish: Wish, changes: list[Change]) -> list[Change]:
    """Quoted words: one phrase in place of another, less one, or in place of what was drafted."""
    pairs = [pair for form in _INSTEAD for pair in form.findall(wish.text)]
    drops = [phrase for form in _DROP for phrase in form.findall(wish.text)]
    said = "\n".join(change.text for change in changes)
    pairs = [(old, new) for old, new in pairs if old in said]
    for old, new in pairs:
        changes = [replace(change, text=change.text.replace(old, new)) for change in changes]
    for phrase in drops:
        changes = [kept for change in changes if (kept := _without(change, phrase)) is not None]
    named = {phrase for pair in pairs for phrase in pair} | set(drops)
    others = [phrase for phrase in sentences.quoted(wish.text) if phrase not in named]
    return _with_words(wish, changes, others) if others else changes


def _without(change: Change, phrase: str) -> Change | None:
    """The change without a quoted phrase; None when it was about nothing else."""
    phrases = sentences.quoted(change.text)
    if phrase not in phrases:
        return change if phrase not in change.text else None
    if len(phrases) == 1:
        return None
    quoted = re.escape(phrase)
    text = re.sub(rf"、?「{quoted}」|,? ?\"{quoted}\"", "", change.text, count=1)
    return replace(change, text=re.sub(r"(?<=[^」])、(?=「)|(?<=\s), (?=\")", "", text))


def _with_words(wish: Wish, changes: Sequence[Change], phrases: Sequence[str]) -> list[Change]:
    """The reviewer's phrases: instead of the drafted rule, in a hook as patterns, in a skill as lines of their own."""
    if not changes:
        return [Change("rule", wish.view.rules_path(), phrase) for phrase in phrases]
    if changes[0].what == "rule":
        return [*(Change("rule", changes[0].path, phrase) for phrase in phrases), *changes[1:]]
    if changes[0].what == "hook":
        return [replace(changes[0], text="".join(f"「{phrase}」" for phrase in phrases))]
    extra = [
        Change(sentences.CAUTION if NEGATION.search(phrase) else sentences.STATE, changes[0].path, phrase)
        for phrase in phrases
    ]
    return [*changes, *extra]


def _as_hook(changes: Sequence[Change], view: HarnessView) -> list[Change]:
    """One hook with the claims that the rules and cautions quote, in their place."""
    turned = [change for change in changes if _forbids(change)]
    claims = [claim for change in turned for claim in sentences.quoted(change.text) or [_bare(change.text)]]
    kept = [change for change in changes if change not in turned]
    path = free_path(view, "hooks/forbid_{}.yaml", "claims")
    return (
        [Change("hook", path, "".join(f"「{claim}」" for claim in dict.fromkeys(claims))), *kept]
        if claims
        else list(changes)
    )


def _forbids(change: Change) -> bool:
    """Whether the change says what must not be said: a hook can see that, and nothing else."""
    return change.what == "hook" or (
        change.what in {"rule", sentences.CAUTION} and NEGATION.search(change.text) is not None
    )


def _bare(rule: str) -> str:
    return re.sub(r"^(?:不要|不得|禁止|不许|不能)(?:对观众)?说?", "", rule).strip("。. ")


def _as_rules(wish: Wish, changes: Sequence[Change]) -> list[Change]:
    """What drafted hooks look for as rules instead."""
    zh, path = wish.view.chinese, wish.view.rules_path()
    return [
        Change(
            "rule",
            path,
            say("claims.rule", chinese=zh, said=listed(sentences.quoted(change.text), chinese=zh)),
        )
        if change.what == "hook"
        else change
        for change in changes
    ]


def _in_one_file(wish: Wish, changes: Sequence[Change]) -> list[Change]:
    """Only the file that is named, else the hook asked for, else the file that is blamed, else the first one."""
    paths = list(dict.fromkeys(change.path for change in changes))
    named = ONLY_PATH.search(wish.text)
    ranked = [path for path in paths if named and path.endswith(named["path"])]
    ranked += [path for path in paths if _wants_hook(wish) and path.startswith("hooks/")]
    ranked += [path for path in paths if path == wish.blamed]
    return [change for change in changes if change.path == next(iter([*ranked, *paths]))]


def _shorter(wish: Wish, changes: Sequence[Change]) -> list[Change]:
    """Each change in fewer words; the reviewer's own words stay."""
    own = set(sentences.quoted(wish.text))
    return [
        change
        if change.what == "hook" or change.text in own
        else replace(change, text=shorten_sentence(change.text))
        for change in changes
    ]
