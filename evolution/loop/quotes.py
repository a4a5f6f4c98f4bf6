"""Checks that what a model quotes of a case really stands there, and at which turn.

Only what the case says counts: words of one message, one call or one remark. The names of the fields it is written in
are the workbench's own, and a few letters stand everywhere.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evolution.prompts.diagnosis import LONGEST_QUOTE, CaseBrief, Evidence, WrongTurn

# Letters and digits that a quote has at least, wide ones (漢) counted twice; less only where it is all that was said.
FEWEST_LETTERS = 6
# What is written under these is what somebody or something said, however short.
_SAID = frozenset({"text", "content", "reply", "symptom", "error", "result", "goal", "reason", "detail"})
# What is written under these is of the format.
_FORMAT = frozenset({"role", "type", "kind", "status", "outcome", "turn", "id", "tool_call_id", "event"})
_FIELD = re.compile(r'"[^"\n]*"\s*:')
# Words that the workbench writes itself around what a case says.
_NAMES = frozenset(
    {*CaseBrief.model_fields, *_SAID, *_FORMAT, "danmaku", "history", "user", "assistant", "tool", "system"}
    | {
        "messages",
        "tool_calls",
        "calls",
        "hooks",
        "function",
        "name",
        "arguments",
        "reasoning",
        "skills_loaded",
    }
)
# A source may give any number as a turn.
MOST_TURNS = 1_000


def verify_evidence(
    evidence: Sequence[Evidence], briefs: Mapping[str, CaseBrief], shown: Mapping[str, CaseBrief]
) -> list[dict[str, Any]]:
    """The evidence whose quote stands verbatim in the case it names, each once, at the turn where it stands.

    `briefs` are the whole cases by id, `shown` are they as the model saw them: a passage that it was not shown it can't
    have read, and one that runs over a cut stands nowhere. Of a long quote the first LONGEST_QUOTE characters are kept.
    """
    kept: list[dict[str, Any]] = []
    for item in evidence:
        brief = briefs.get(item.case.strip())
        if brief is None or not _was_read(item.quote, brief, shown.get(brief.id)):
            continue
        turn = turn_of_quote(brief, item.quote, item.turn)
        quote = item.quote.strip()[:LONGEST_QUOTE]
        entry = {"case": int(brief.id), "turn": turn, "quote": quote, "verified": True}
        if entry not in kept:
            kept.append(entry)
    return kept


def verify_turns(turns: Sequence[WrongTurn], briefs: Mapping[str, CaseBrief]) -> list[dict[str, int]]:
    """The first wrong turns of cases that were shown, one each, that these cases have."""
    found: dict[int, int] = {}
    for item in turns:
        brief = briefs.get(item.case.strip())
        if brief is not None and item.turn < max(2, len(_pieces_by_turn(brief))):
            found.setdefault(int(brief.id), item.turn)
    return [{"case": case, "turn": turn} for case, turn in found.items()]


def quotes_verbatim(brief: CaseBrief, quote: str) -> bool:
    """Say whether the quote says something, and stands in one piece in what the case says, white space aside."""
    wanted = _plain(quote)
    if _weigh(wanted) and wanted in {_plain(text) for text in _sayings(brief.model_dump())}:
        return True
    if _weigh(wanted) < FEWEST_LETTERS or _NAMES.issuperset(re.findall(r"\w+", _FIELD.sub("", wanted))):
        return False
    return any(wanted in piece for pieces in [*_pieces_by_turn(brief), _remarks(brief)] for piece in pieces)


def turn_of_quote(brief: CaseBrief, quote: str, claimed: int) -> int:
    """The turn in which a verbatim quote stands: the claimed one if it does, else the first one.

    Turn n is the n-th message of the model with the results of its calls; 0 is what came before it, and all that was
    said of the case afterwards.
    """
    wanted = _plain(quote)
    turns = _pieces_by_turn(brief)
    found = [turn for turn, pieces in enumerate(turns) if any(wanted in piece for piece in pieces)]
    if claimed in found:
        return claimed
    return found[0] if found else 0


def _was_read(quote: str, brief: CaseBrief, shown: CaseBrief | None) -> bool:
    return quotes_verbatim(brief, quote) and (shown is None or quotes_verbatim(shown, quote))


def _pieces_by_turn(brief: CaseBrief) -> list[list[str]]:
    """What was said and done in each turn, from the request at 0; each piece by itself."""
    turns: list[list[str]] = [list(_pieces(brief.request))]
    trajectory = brief.trajectory or {}
    for message in _rows(trajectory, "messages"):
        if message.get("role") == "assistant":
            turns.append([])
        spoken = {
            key: value for key, value in message.items() if key in ("content", "reasoning", "tool_calls")
        }
        turns[-1] += _pieces(spoken, whole=("tool_calls",))
    # A source may have recorded its calls alone.
    for call in _rows(trajectory, "tool_calls"):
        _put(turns, call.get("turn"), [*_pieces(call), *_forms(call)])
    for part in ("calls", "hooks"):
        for row in _rows(trajectory, part):
            _put(turns, row.get("turn"), list(_pieces(row)))
    # After the answer there may be more calls: the reply is of the last turn only where no message has it.
    said = {piece for pieces in turns for piece in pieces}
    _put(turns, max(1, len(turns) - 1), [piece for piece in _pieces(brief.reply) if piece not in said])
    return turns


def _put(turns: list[list[str]], turn: Any, pieces: Sequence[str]) -> None:
    """Add to a turn, which is made where no message tells of it; what tells no turn is of the last."""
    if not isinstance(turn, int) or isinstance(turn, bool) or not 0 <= turn < MOST_TURNS:
        turn = len(turns) - 1
    turns += [[] for _missing in range(turn + 1 - len(turns))]
    turns[turn] += pieces


def _remarks(brief: CaseBrief) -> list[str]:
    """What was said of the case: by the judge, by its source."""
    trajectory = brief.trajectory or {}
    said = [brief.symptom, brief.reasons, brief.findings, brief.context, trajectory.get("error")]
    return [piece for part in said for piece in _pieces(part, whole=tuple(brief.context or ()))]


def _pieces(value: Any, whole: Sequence[str] = ()) -> Iterator[str]:
    """The texts of a value, each by itself, as they are and as JSON writes them; of some fields the JSON too."""
    if isinstance(value, str):
        yield _plain(value)
        written = json.dumps(value, ensure_ascii=False)[1:-1]
        if written != value:
            yield _plain(written)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key in _FORMAT and not isinstance(entry, (dict, list)):
                continue
            yield from _pieces(entry, whole)
            if key in whole or key in ("arguments", "result"):
                yield from _forms(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _pieces(entry, whole)


def _forms(value: Any) -> list[str]:
    """A value as JSON: models quote what a tool was given, and gave, as they see it."""
    if isinstance(value, str):
        return []
    return [_plain(json.dumps(value, ensure_ascii=False, indent=indent)) for indent in (None, 1)]


def _sayings(value: Any, field: str = "") -> Iterator[str]:
    """What was said, in full: the texts under the fields that hold such."""
    if isinstance(value, str):
        if field in _SAID:
            yield value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _sayings(entry, str(key))
    elif isinstance(value, list):
        for entry in value:
            yield from _sayings(entry, field)


def _weigh(text: str) -> int:
    wide = ("W", "F")
    return sum(1 + (unicodedata.east_asian_width(each) in wide) for each in text if each.isalnum())


def _rows(trajectory: Mapping[str, Any], part: str) -> list[Mapping[str, Any]]:
    rows = trajectory.get(part)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _plain(text: str) -> str:
    return " ".join(text.split())
