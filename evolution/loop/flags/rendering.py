"""Flags rules that stand in a prompt section as before, and that what is rendered of it says no longer.

Whatever hides them, a block of the template, a value that is set or a filter: both versions are rendered as a run does
it, with stand-ins for what is only known there; once with something for every value, once with nothing.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import jinja2

from evolution.loop.flags.flag import Flag, FlagKind
from evolution.loop.flags.schemas import shorten
from evolution.loop.rules import list_rules
from harness_repo.format.prompts import PromptSection
from harness_repo.format.templates import TemplateUnusable, variables_of
from harness_repo.format.textfile import read_text
from harness_repo.runtime.computing import Allowance, TooMuchComputing
from harness_repo.runtime.prompt import PromptError, render_section

# Of computing, for all sections of a change.
SECONDS = 1.0
# What a sandbox asks of a value before it calls it.
_REFUSALS = frozenset({"unsafe_callable", "alters_data"})


class _Something(str):
    """Stands for any value: it has every attribute, can be called, and is a list of two, and a pair."""

    __slots__ = ()

    def __getattr__(self, name: str) -> "_Something":
        if name.startswith("_") or name in _REFUSALS:
            raise AttributeError(name)
        return self

    def __getitem__(self, _key: object) -> "_Something":
        return self

    def __call__(self, *_args: object, **_named: object) -> "_Something":
        return self

    def __iter__(self) -> Iterator[str]:
        yield self
        yield self


_SOMETHING = _Something("something")
_STAND_INS = (_SOMETHING, jinja2.ChainableUndefined())
# What says the stand-in as it is.
_PLAIN_VALUE = re.compile(r"{{-?\s*[\w.]+\s*-?}}")


def flag_unsaid(
    base: Mapping[str, bytes], head: Mapping[str, bytes], told: Iterable[Flag] = ()
) -> Iterator[Flag]:
    """The flags of the sections that differ, beside the rules in the head; none beside those that are told of.

    A section that can't be rendered without the values of a run is left to what its text says.
    """
    allowance = Allowance(SECONDS)
    known = {(flag.path, flag.line) for flag in told if flag.side == "new"}
    for path, data in head.items():
        before = base.get(path, data)
        if before == data or not path.startswith("prompts/"):
            continue
        with suppress(TooMuchComputing):
            lost = allowance.spend(path, _list_lost, path, before, data)
            for rule in list_rules({path: data}):
                said = _PLAIN_VALUE.sub(_SOMETHING, rule.text)
                if said in lost and (path, rule.line) not in known:
                    yield Flag(path, "new", rule.line, FlagKind.RULE_CONDITIONAL, shorten(rule.text))


def _list_lost(path: str, before: bytes, after: bytes) -> set[str]:
    """The rules that are said before and not after, with some of the stand-ins."""
    lost: set[str] = set()
    for value in _STAND_INS:
        # Where either fails with the stand-ins nothing can be compared.
        with suppress(PromptError, TemplateUnusable):
            old, new = (_list_said(path, data, value) for data in (before, after))
            lost |= {text for text in old if not _begins_one(text, new)}
    return lost


def _list_said(path: str, data: bytes, value: Any) -> list[str]:
    """The rules of what is rendered, sorted."""
    text = read_text(path, data)[0] or ""
    values = dict.fromkeys(variables_of(text), value)
    said = render_section(PromptSection(path, path, "system", text), values)
    # What is rendered is no template any more: nothing in it may be taken for one.
    plain = said.replace("{", "(").replace("}", ")")
    return sorted(rule.text for rule in list_rules({path: plain.encode("utf-8", "replace")}))


def _begins_one(text: str, said: list[str]) -> bool:
    """Whether one of the sorted texts begins with it: a line below a list's item becomes a part of it."""
    at = bisect_left(said, text)
    return at < len(said) and said[at].startswith(text)
