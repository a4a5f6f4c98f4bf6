"""Finds what rules describe in the texts of a record, and puts numbered or keyed placeholders in its place."""

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import re2
import regex
from django.conf import settings
from django.utils.translation import gettext as _

from evolution.loop.masking.check_digits import passes_cn_id, passes_luhn
from evolution.loop.masking.rule import Rule
from evolution.loop.masking.texts import Span, Texts, is_hidden
from evolution.ports import Check, Feedback, Record, Rejected
from harness_repo.format.patterns import PatternError, compile_pattern

# Of one rule and one record; one of a million characters has as much again, and so on.
SECONDS = 1.0
# What was found once is masked wherever it stands, unless it is so short that it stands there by chance.
LEAST_REPEATED = 8
# Of one record; each costs a walk through it.
MOST_REPEATED = 200
AUTOMATON_BYTES = 64 * 1024 * 1024

Counts = dict[str, int]

_CHECKS = {"luhn": passes_luhn, "cn_id": passes_cn_id}
_KEYED = regex.compile(r"\[([a-z0-9_-]{1,32}) ~([0-9a-f]{12})\]")
_COUNTRY = re.compile(r"^(?:[+＋]|00)?86(?=1\d{10}$)")
_SEPARATORS = re.compile(r"[\s().（）-]")
# Fields of a record whose texts are looked at, in this order.
_MASKED_FIELDS = (
    "request", "trajectory", "reply", "symptom", "context", "scores", "findings", "category", "errors", "checks",
    "feedback", "tags",
)  # fmt: skip
# What a record is told from others by.
_IDENTITY = ("source_id", "source", "harness_commit")
# What the database holds of it; placeholders may be longer than what they stand in for.
_LONGEST = {"source_id": 200, "source": 64, "harness_commit": 40}


class MaskingError(Exception):
    """A rule can't be applied; the message says which, and nothing of the text."""


@dataclass(frozen=True)
class Found:
    """What a rule found in a text: from `start` to before `end`."""

    start: int
    end: int
    rule: str
    label: str
    text: str
    # whether something beside it gave it away
    has_name: bool = False


class Masker:
    """Applies rules; holds nothing of what it masks."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Raise MaskingError for a pattern that is broken."""
        self.rules = tuple(rules)
        self.patterns = [_compile(rule) for rule in rules]
        self._labels = {rule.name: rule.label for rule in rules}
        self._always = [number for number, rule in enumerate(rules) if not rule.quick]
        self._quick_patterns = [re2.compile(rule.quick) if rule.quick else None for rule in rules]
        self._quick, self._quick_rules = _build_quick(rules)

    def mask_record(self, record: Record, written: Mapping[str, str] | None = None) -> tuple[Record, Counts]:
        """The record without what the rules find, and how often each of them struck; raises MaskingError.

        `written` has those of its fields as JSON that are neither texts nor lists of texts, where the caller has them.
        """
        if written is not None and self._choose(_join(record, written)) is None:
            return record, {}
        held = [getattr(record, name) for name in _MASKED_FIELDS]
        masked, counts = self._mask([_plain(value) for value in held], number_found)
        identity, more = self._mask([getattr(record, name) for name in _IDENTITY], _key_found)
        if not counts and not more:
            return record, {}
        named = {name: _fit(text, _LONGEST[name]) for name, text in zip(_IDENTITY, identity, strict=True)}
        changed = dict(zip(_MASKED_FIELDS, masked, strict=True)) | named
        return replace(record, **_typed(changed)), dict(Counter(counts) + Counter(more))

    def mask_item(
        self, item: Record | Rejected, written: Mapping[str, str] | None = None
    ) -> tuple[Record | Rejected, Counts]:
        """A record or a rejection, masked; a record that a rule can't be applied to is rejected."""
        if isinstance(item, Rejected):
            return self.mask_rejected(item), {}
        try:
            return self.mask_record(item, written)
        except MaskingError as error:
            return Rejected(item.line, str(error)), {}

    def mask_rejected(self, item: Rejected) -> Rejected:
        """A rejection whose reason quotes nothing of what the rules find."""
        return replace(item, reason=self.mask_text(item.reason))

    def mask_text(self, text: str) -> str:
        """A text such as a message or a file's name, masked; one that a rule can't be applied to is left out."""
        try:
            masked: str = self._mask(text, number_found)[0]
        except MaskingError as error:
            return f"[{error}]"
        return masked

    def mask_id(self, text: str) -> str:
        """A text that tells something apart, masked; one that a rule can't be applied to has a digest in its place."""
        try:
            masked: str = self._mask(text, _key_found)[0]
        except MaskingError:
            return hashlib.blake2b(
                text.encode("utf-8", "surrogatepass"), digest_size=16, key=_key()
            ).hexdigest()
        return masked

    def mask_value(self, value: Any) -> tuple[Any, Counts]:
        """A JSON value masked, and how often each rule struck; raises MaskingError."""
        return self._mask(value, number_found)

    def mask_part(self, value: Any) -> tuple[Any, Counts]:
        """A JSON value that is a part of a record to come: the same value has the same placeholder in all parts."""
        return self._mask(value, _key_found)

    def find(self, text: str) -> list[Found]:
        """What the rules find in one text, in order, without overlaps; raises MaskingError."""
        return self._find(Texts(text), range(len(self.rules)))

    def look_through(self, value: Any) -> tuple[str, list[Found]]:
        """The texts of a JSON value joined into one, and what the rules find in it; raises MaskingError."""
        texts = Texts(value)
        return texts.joined, self._find(texts, range(len(self.rules)))

    def _mask(self, value: Any, name: "Naming") -> tuple[Any, Counts]:
        numbers = self._candidates(value)
        if numbers is None:
            return value, {}
        texts = Texts(value)
        found = self._find(texts, numbers)
        if not found:
            return value, {}
        spans = [Span(each.start, each.end, text) for each, text in zip(found, name(found), strict=True)]
        return texts.replace(spans), dict(Counter(each.rule for each in found))

    def _candidates(self, value: Any) -> Sequence[int] | None:
        """Which rules may find something in the value; None where there is nothing to be found."""
        return self._choose(value if isinstance(value, str) else _DUMP(value))

    def _choose(self, text: str) -> Sequence[int] | None:
        """The same of a text, or of JSON."""
        # What is escaped within a text is not found as it stands.
        if is_hidden(text):
            return range(len(self.rules))
        matched = self._quick.Match(text.encode("utf-8", "surrogatepass"))
        if not matched:
            return range(len(self.rules))
        if _NAMED_APART in matched:
            return range(len(self.rules))
        likely = sorted({*self._always, *(self._quick_rules[index] for index in matched if index)})
        return likely if likely or _KEYED.search(text) else None

    def _find(self, texts: Texts, numbers: Iterable[int]) -> list[Found]:
        found = [each for number in numbers for each in self._search(number, texts)]
        found += _find_again(texts.joined, found)
        for match in _KEYED.finditer(texts.joined):
            label = self._labels.get(match[1], match[1])
            found.append(Found(*match.span(), match[1], label, match.group()))
        return _merge(texts.joined, found)

    def _search(self, number: int, texts: Texts) -> Iterator[Found]:
        """Yield what a rule finds, looked for only where its quick expression matches."""
        quick, reach = self._quick_patterns[number], self.rules[number].reach
        if quick is None:
            parts: Iterable[tuple[int, int]] = [(0, len(texts.joined))]
        else:
            parts = texts.find_windows(quick, *reach) if reach else texts.find_pieces(quick)
        deadline = time.monotonic() + SECONDS * (1 + len(texts.joined) / 1e6)
        for start, end in parts:
            yield from self._search_part(number, texts.joined, start, end, deadline)

    def _search_part(self, number: int, text: str, start: int, end: int, deadline: float) -> Iterator[Found]:
        rule, seconds = self.rules[number], max(deadline - time.monotonic(), 0.001)
        try:
            for match in self.patterns[number].finditer(text, start, end, timeout=seconds):
                start, end = _span(match)
                if start < end and _has_right_digits(match):
                    has_name = (start, end) != match.span()
                    yield Found(start, end, rule.name, rule.label, text[start:end], has_name)
        except TimeoutError:
            message = _("the masking rule %(name)s takes too long")
            raise MaskingError(message % {"name": rule.name}) from None


# The number of _TELLING_VALUE in the automaton.
_NAMED_APART = 1
_TELLING_VALUE = (
    r"(?i)(?:key|secret|token|authorization|cookie|passw(?:or)?d|passphrase|pwd|密码|口令|密钥|令牌)"
    r"\\*\"\s*[,}\]]"
)
Naming = Callable[[Sequence[Found]], list[str]]
_DUMP = json.JSONEncoder(ensure_ascii=False, default=str).encode


def _compile(rule: Rule) -> regex.Pattern[str]:
    try:
        return compile_pattern(rule.pattern)
    except PatternError as error:
        raise MaskingError(f"{rule.name}: {error}") from error


def _build_quick(rules: Sequence[Rule]) -> tuple[Any, dict[int, int]]:
    """One automaton of all quick expressions, and the rule's number by the expression's; the first always matches.

    The second matches where a telling name is a value of its own, and so not beside what it names.
    """
    options = re2.Options()
    options.max_mem = AUTOMATON_BYTES
    automaton = re2.Set.SearchSet(options)
    # An automaton that runs out of memory says that nothing matched; without this one that would be believed.
    automaton.Add("")
    automaton.Add(_TELLING_VALUE)
    numbers = {automaton.Add(rule.quick): number for number, rule in enumerate(rules) if rule.quick}
    automaton.Compile()
    return automaton, numbers


def _span(match: regex.Match[str]) -> tuple[int, int]:
    """What the group `secret` matched, or all of the match."""
    if "secret" in match.re.groupindex and match.start("secret") >= 0:
        return match.span("secret")
    return match.span()


def _has_right_digits(match: regex.Match[str]) -> bool:
    names = match.re.groupindex
    return all(is_right(match[name]) for name, is_right in _CHECKS.items() if name in names and match[name])


def _find_again(text: str, found: Sequence[Found]) -> list[Found]:
    """The other places of what a name gave away, such as an order number that is said again without one."""
    named = {each.text: each for each in found if each.has_name and len(each.text) >= LEAST_REPEATED}
    again = []
    for value, first in list(named.items())[:MOST_REPEATED]:
        at = text.find(value)
        while at >= 0:
            end = at + len(value)
            if not _continues(text, at - 1, end):
                again.append(replace(first, start=at, end=end))
            at = text.find(value, end)
    return again


def _continues(text: str, before: int, after: int) -> bool:
    """Whether a letter or digit of ASCII stands directly before or after."""
    around = text[max(before, 0) : before + 1] + text[after : after + 1]
    return any(character.isascii() and character.isalnum() for character in around)


def _merge(text: str, found: list[Found]) -> list[Found]:
    """In order, without overlaps: two that overlap are one, named by the longer; nothing of either stays."""
    merged: list[Found] = []
    for each in sorted(found, key=lambda each: (each.start, -each.end)):
        last = merged[-1] if merged else None
        if last is None or each.start >= last.end:
            merged.append(each)
        elif each.end > last.end:
            named = max(last, each, key=lambda one: one.end - one.start)
            merged[-1] = replace(named, start=last.start, end=each.end, text=text[last.start : each.end])
    return merged


def number_found(found: Sequence[Found]) -> list[str]:
    """Placeholders by the order of appearance; each label has numbers of its own."""
    numbers: dict[tuple[str, str], str] = {}
    last: Counter[str] = Counter()
    named = []
    for each in found:
        identity = each.label, _identity(each)
        if identity not in numbers:
            last[each.label] += 1
            numbers[identity] = f"[{each.label} {last[each.label]}]"
        named.append(numbers[identity])
    return named


def _key_found(found: Sequence[Found]) -> list[str]:
    """Placeholders that are the same for a value in everything that this installation imports."""
    return [f"[{each.rule} ~{_identity(each)}]" for each in found]


def _identity(found: Found) -> str:
    """Twelve hex digits that stand for the value, and tell nothing of it without the installation's key."""
    if keyed := _KEYED.fullmatch(found.text):
        return keyed[2]
    plain = _SEPARATORS.sub("", found.text).casefold()
    if found.label == "phone":
        plain = _COUNTRY.sub("", plain)
    # The key comes first: a phone number's plain digest is found by trying them all.
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=6, key=_key()).hexdigest()


def _key() -> bytes:
    return hashlib.sha256(settings.SECRET_KEY.encode()).digest()


def _join(record: Record, written: Mapping[str, str]) -> str:
    """All texts of a record in one."""
    identity = (getattr(record, name) for name in _IDENTITY)
    return "\n".join(
        [*identity, *written.values(), record.reply, record.symptom, record.category, *record.tags]
    )


def _fit(masked: str, most: int) -> str:
    """A masked text of at most so many characters that still differs from others."""
    if len(masked) <= most:
        return masked
    digest = hashlib.blake2b(masked.encode("utf-8", "surrogatepass"), digest_size=6, key=_key()).hexdigest()
    return f"{masked[: most - len(digest) - 1]}~{digest}"


def _plain(value: Any) -> Any:
    """Checks and feedback as lists, everything else as it is."""
    if isinstance(value, tuple):
        return [list(astuple(each)) if isinstance(each, Check | Feedback) else each for each in value]
    return value


def _typed(values: dict[str, Any]) -> dict[str, Any]:
    """The fields as a record has them, from what `_plain` made of them."""
    return values | {
        "errors": tuple(values["errors"]),
        "tags": tuple(values["tags"]),
        "checks": tuple(Check(*each) for each in values["checks"]),
        "feedback": tuple(Feedback(*each) for each in values["feedback"]),
    }
