"""Checks that what a model quotes of a case really stands there, and at which turn."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evolution.prompts.diagnosis import CaseBrief, Evidence, WrongTurn


def verify_evidence(
    evidence: Sequence[Evidence], briefs: Mapping[str, CaseBrief], shown: Mapping[str, CaseBrief]
) -> list[dict[str, Any]]:
    """The evidence whose quote stands verbatim in the case it names, each once, at the turn where it stands.

    `briefs` are the whole cases by id, `shown` are they as the model saw them: a passage that it was not shown it can't
    have read, and one that runs over a cut stands nowhere.
    """
    kept: list[dict[str, Any]] = []
    for item in evidence:
        brief = briefs.get(item.case.strip())
        if brief is None or not _was_read(item.quote, brief, shown.get(brief.id)):
            continue
        turn = turn_of_quote(brief, item.quote, item.turn)
        entry = {"case": int(brief.id), "turn": turn, "quote": item.quote, "verified": True}
        if entry not in kept:
            kept.append(entry)
    return kept


def verify_turns(turns: Sequence[WrongTurn], briefs: Mapping[str, CaseBrief]) -> list[dict[str, int]]:
    """The first wrong turns of cases that were shown, one each, that these cases have."""
    found: dict[int, int] = {}
    for item in turns:
        brief = briefs.get(item.case.strip())
        if brief is not None and item.turn < max(2, len(_texts_by_turn(brief))):
            found.setdefault(int(brief.id), item.turn)
    return [{"case": case, "turn": turn} for case, turn in found.items()]


def quotes_verbatim(brief: CaseBrief, quote: str) -> bool:
    """Say whether the quote stands in the case, white space aside."""
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


def _was_read(quote: str, brief: CaseBrief, shown: CaseBrief | None) -> bool:
    return quotes_verbatim(brief, quote) and (shown is None or quotes_verbatim(shown, quote))


def _texts_by_turn(brief: CaseBrief) -> list[str]:
    """The plain text of each turn, from the request at 0."""
    turns: list[list[str]] = [[*_texts(brief.request)]]
    trajectory = brief.trajectory or {}
    for message in _rows(trajectory, "messages"):
        if message.get("role") == "assistant":
            turns.append([])
        turns[-1] += [*_texts(message), json.dumps(message, ensure_ascii=False)]
    # A source may have recorded its calls alone.
    for call in _rows(trajectory, "tool_calls"):
        turn = call.get("turn")
        if isinstance(turn, int) and 0 < turn <= len(turns):
            turns += [[]] if turn == len(turns) else []
            turns[turn] += [*_texts(call), json.dumps(call, ensure_ascii=False)]
    return [_plain("\n".join(texts)) for texts in turns]


def _shown_text(brief: CaseBrief) -> str:
    """All texts of the case, and the case as JSON, since models quote a tool's result as they see it."""
    shown = brief.model_dump(exclude={"id"})
    forms = [json.dumps(shown, ensure_ascii=False), json.dumps(shown, ensure_ascii=False, indent=1)]
    return "\n".join([*_texts(shown), *forms])


def _rows(trajectory: Mapping[str, Any], part: str) -> list[Mapping[str, Any]]:
    rows = trajectory.get(part)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


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
