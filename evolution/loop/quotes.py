"""Checks that what a model quotes of a case really stands there, and at which turn."""

import json
from collections.abc import Iterator
from typing import Any

from evolution.prompts.diagnosis import CaseBrief


def quotes_verbatim(brief: CaseBrief, quote: str) -> bool:
    """Say whether the quote stands in the case as it was shown, white space aside."""
    wanted = _plain(quote)
    return bool(wanted) and wanted in _plain(_shown_text(brief))


def turn_of_quote(brief: CaseBrief, quote: str, claimed: int) -> int:
    """The turn in which a verbatim quote stands: the claimed one if it does, else the first one.

    Turn n is the n-th message of the model with the results of its calls; 0 is what came before it. A quote
    that is in no message, but in the request or in what was said of the case, keeps the claim where that turn
    exists, else it is 0.
    """
    turns = _texts_by_turn(brief)
    wanted = _plain(quote)
    found = [turn for turn, text in enumerate(turns) if wanted in text]
    if claimed in found or (not found and claimed < len(turns)):
        return claimed
    return found[0] if found else 0


def _texts_by_turn(brief: CaseBrief) -> list[str]:
    """The plain text of each turn, from the request at 0."""
    turns: list[list[str]] = [[*_texts(brief.request)]]
    messages = (brief.trajectory or {}).get("messages") or []
    for message in (entry for entry in messages if isinstance(entry, dict)):
        if message.get("role") == "assistant":
            turns.append([])
        turns[-1] += [*_texts(message), json.dumps(message, ensure_ascii=False)]
    return [_plain("\n".join(texts)) for texts in turns]


def _shown_text(brief: CaseBrief) -> str:
    """All texts of the case, and the case as JSON, since models quote a tool's result as they see it."""
    shown = brief.model_dump(exclude={"id"})
    forms = [json.dumps(shown, ensure_ascii=False), json.dumps(shown, ensure_ascii=False, indent=1)]
    return "\n".join([*_texts(shown), *forms])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from _texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)


def _plain(text: str) -> str:
    return " ".join(text.split())
