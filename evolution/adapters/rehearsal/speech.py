"""How things are said: fields with their labels, clauses into sentences, in Chinese or English."""

import re
from collections.abc import Sequence
from typing import Any

from evolution.adapters.rehearsal.reading import Label
from evolution.adapters.rehearsal.text import HAN, is_chinese

EMPTY = frozenset({"", "暂无", "未知", "unknown", "n/a"})
NOTHING = frozenset({"无", "没有", "none", "no"})
ENDS = ("。", "！", "？", ".", "!", "?")
COMMA = {True: "，", False: ", "}
# Said to sound friendly, unless the sentence has such a particle already.
PARTICLE = re.compile(r"[哈啊哦呀呢吧啦哟拜]$")

BILINGUAL = re.compile(r"^(.*?)\s*\(([^()]*)\)$", re.DOTALL)
CLAUSE_END = re.compile(r"(?<=[，,。！!；;])")
# A Chinese value that starts so follows its label without 是.
PREDICATE = re.compile(r"^(?:[\d约大满每]|[不没无未已可需要先有包免支]|付款|当天|在)")
# English labels that make a sentence of their own: ships within, valid until.
PREPOSITION = re.compile(r"\b(?:within|from|until|for)$")
VERB = re.compile(r"^ships\b")
# English labels that are no noun with an article.
HEADLINE = re.compile(r"^(?:how|where|sold|not|please|returns|pieces)\b|\blife$")


def say_field(label: Label, value: Any, *, chinese: bool) -> str:
    """A field with its label as a clause."""
    text = spoken(value, chinese=chinese)
    amount = isinstance(value, int | float)
    if chinese:
        return _in_chinese(label.zh, f"{text}{label.zh_unit if amount else ''}")
    return _in_english(label.en, f"{text} {label.en_unit}".strip() if amount else text)


def _in_chinese(label: str, text: str) -> str:
    if text in NOTHING:
        return f"没有{label}"
    if text.startswith(label) or (text.endswith(label) and len(text) <= len(label) + 3):
        return text
    return f"{label}{text}" if PREDICATE.match(text) else f"{label}是{text}"


def _in_english(label: str, text: str) -> str:
    if text.lower() in NOTHING:
        return f"{label}: none"
    if PREPOSITION.search(label):
        last = label.rsplit(" ", 1)[-1]
        rest = text.removeprefix(f"{last} ")
        return f"it {label} {rest}" if VERB.match(label) else f"it is {label} {rest}"
    if HEADLINE.search(label):
        return f"{label}: {text}"
    verb = "are" if label.endswith("s") else "is"
    return f"the {label} {verb} {text}"


def join_clauses(clauses: Sequence[str], *, chinese: bool) -> str:
    """The clauses as running text; those after a full stop begin a new sentence."""
    text = ""
    for clause in clauses:
        if not text or text.endswith(ENDS):
            space = " " if text and not chinese else ""
            text += space + (clause if chinese else clause[:1].upper() + clause[1:])
        else:
            text += COMMA[chinese] + clause
    return text


def close_sentence(text: str, *, chinese: bool) -> str:
    """The text with a full stop, in Chinese with a friendly particle before it."""
    if text.endswith(ENDS) or not text:
        return text
    if not chinese:
        return f"{text}."
    return f"{text}。" if PARTICLE.search(text) else f"{text}哈。"


def in_language(text: str, *, chinese: bool) -> str:
    """Of a text with its translation in brackets, such as 3个工作日 (3 working days), the part to be said."""
    match = BILINGUAL.match(text)
    if match is None or not HAN.search(match.group(1)) or HAN.search(match.group(2)):
        return text
    return match.group(1 if chinese else 2)


def is_known(value: Any) -> bool:
    """Whether a result value says anything."""
    return value is not None and value != [] and str(value).strip().lower() not in EMPTY


def spoken(value: Any, *, chinese: bool) -> str:
    """A result value as it is said."""
    if isinstance(value, list):
        return ("、" if chinese else ", ").join(spoken(entry, chinese=chinese) for entry in value)
    if isinstance(value, dict):
        return COMMA[chinese].join(f"{key} {spoken(entry, chinese=chinese)}" for key, entry in value.items())
    return in_language(str(value), chinese=chinese)


def shorten(text: str, limit: int | None) -> str:
    """The text without its last clauses, so that it keeps to the limit."""
    if limit is None or len(text) <= limit:
        return text
    kept = ""
    for clause in CLAUSE_END.split(text):
        if len(kept) + len(clause) > limit - 1:
            break
        kept += clause
    return kept.rstrip("，,；; ") + ("。" if is_chinese(kept) else ".") if kept else text[:limit]
