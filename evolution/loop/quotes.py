"""Checks that what a model quotes of a case really stands there."""

import json
from collections.abc import Iterator
from typing import Any

from evolution.prompts.diagnosis import CaseBrief


def quotes_verbatim(brief: CaseBrief, quote: str) -> bool:
    """Say whether the quote stands in the case as it was shown, white space aside."""
    wanted = _plain(quote)
    return bool(wanted) and wanted in _plain(_shown_text(brief))


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
