"""Beside stage 3: a case within a budget of tokens. What bears on the failure stays whole, the rest shrinks first.

Every cut is said in its place, in words that a model reads, and listed for people. Turns keep their numbers.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from evolution.prompts.diagnosis import CaseBrief
from evolution.prompts.tokens import estimate_tokens
from harness_repo.runtime.trajectory import Trajectory

# Turns of a case that may stay whole when space is short: the first that matter, and the last two.
MOST_WHOLE = 4
# Entries of a long list that stay, before it is cut.
ENTRIES = 12
# Lists of a trajectory whose rows are of a turn.
_TURNED = ("tool_calls", "messages", "calls", "hooks")
# Of a trajectory what the format has: the rest of it is the source's own, and never shown.
_FORMAT = frozenset({"format", *(item.name for item in fields(Trajectory))})
# Characters of a name that a source gave, where what it names is left out.
LONGEST_NAME = 40
# A cut that is hardly shorter than what it says is none.
SLACK = 60

Row = TypeVar("Row")


@dataclass(frozen=True)
class Level:
    """How hard to cut: characters of a text in a turn that matters or not, None for all; turns around it that stay."""

    whole: int | None = None
    other: int | None = None
    reach: int | None = None
    is_narrow: bool = False
    # of each list of a trajectory no more than ENTRIES
    is_short: bool = False


LEVELS = (
    Level(),
    Level(other=4_000),
    Level(other=2_000),
    Level(other=1_000),
    Level(other=500),
    Level(other=500, reach=5),
    Level(other=400, reach=3),
    Level(whole=6_000, other=300, reach=2),
    Level(whole=3_000, other=250, reach=1),
    Level(whole=2_000, other=200, reach=0),
    Level(whole=1_000, other=120, reach=0, is_narrow=True),
    Level(whole=600, other=120, reach=0, is_narrow=True),
    Level(whole=400, other=100, reach=0, is_narrow=True),
    Level(whole=160, other=80, reach=0, is_narrow=True),
    Level(whole=160, other=80, reach=0, is_narrow=True, is_short=True),
    Level(whole=80, other=40, reach=0, is_narrow=True, is_short=True),
)


@dataclass(frozen=True)
class Trimmed:
    """A case as it is shown; each cut names the case, its place, and how much is missing."""

    brief: CaseBrief
    cuts: list[dict[str, Any]] = field(default_factory=list)
    tokens: int = 0


def trim_case(brief: CaseBrief, budget: int, blamed: int | None = None) -> Trimmed:
    """The case in at most `budget` tokens; `blamed` is the turn that failed, if known.

    Where no cut is hard enough its trajectory is left out, and only a budget of a few words is not kept.
    """
    trimmed = Trimmed(brief)
    for level in LEVELS:
        trimmed = _cut_at(brief, level, blamed)
        if trimmed.tokens <= budget:
            return trimmed
    return _leave_out(trimmed)


def trim_cases(briefs: Sequence[CaseBrief], budget: int, blamed: Mapping[str, int]) -> list[Trimmed]:
    """The cases within one budget: what a short one leaves over is for the longer ones. `blamed` is by id."""
    found: dict[str, Trimmed] = {}
    left = budget
    by_size = sorted(briefs, key=lambda brief: count_brief(excerpt(brief)))
    for place, brief in enumerate(by_size):
        found[brief.id] = trim_case(brief, left // (len(by_size) - place), blamed.get(brief.id))
        left = max(0, left - found[brief.id].tokens)
    return [found[brief.id] for brief in briefs]


def count_brief(brief: CaseBrief) -> int:
    """Tokens of a case as it stands in the prompt."""
    return estimate_tokens(json.dumps(brief.shown(), ensure_ascii=False, indent=1))


def excerpt(brief: CaseBrief) -> CaseBrief:
    """The case without what says nothing of the failure or stands there twice, its messages numbered by turn."""
    trajectory = brief.trajectory
    if trajectory is None:
        return brief
    kept = ("status", "skills_loaded", "error")
    shown = {key: trajectory[key] for key in kept if trajectory.get(key)}
    shown["tool_calls"] = [_strip_call(call) for call in _rows(trajectory, "tool_calls")]
    shown["hooks"] = [hook for hook in _rows(trajectory, "hooks") if hook.get("outcome") != "pass"]
    shown["calls"] = [_strip_model_call(call) for call in _rows(trajectory, "calls")]
    shown["messages"] = _messages(trajectory)
    return brief.model_copy(update={"trajectory": {key: value for key, value in shown.items() if value}})


def turns_that_matter(brief: CaseBrief, blamed: int | None) -> list[int]:
    """Turns that the failure is about, the most telling first: blamed, with an error, cited by the judge, the last."""
    trajectory = brief.trajectory or {}
    found = [blamed] if blamed else []
    found += [_turn(call) for call in _rows(trajectory, "tool_calls") if call.get("error")]
    found += [_turn(hook) for hook in _rows(trajectory, "hooks")]
    cited = [text for finding in brief.findings if len(text := finding.get("text", "").strip()) > 1]
    for message in _rows(trajectory, "messages"):
        said = str(message.get("content") or "")
        found += [_turn(message)] if any(text in said for text in cited) else []
    last = _last_turn(trajectory)
    return [turn for turn in dict.fromkeys([*found, last, last - 1]) if turn > 0]


def _cut_at(brief: CaseBrief, level: Level, blamed: int | None) -> Trimmed:
    shown = excerpt(brief)
    matter = turns_that_matter(shown, blamed)
    last = _last_turn(shown.trajectory or {})
    if level.is_narrow:
        matter = list(dict.fromkeys([*matter[:MOST_WHOLE], last]))
    cutter = _Cutter(brief.id, level, frozenset(matter))
    update: dict[str, Any] = {
        "category": cutter.shrink(shown.category, 0, "category", level.whole),
        "reasons": cutter.shrink_texts(shown.reasons, "reasons"),
        "findings": cutter.shrink_rows(shown.findings, "findings"),
        "request": cutter.shrink(shown.request, 0, "request", level.whole),
        "context": cutter.shrink(shown.context, 0, "context", level.other),
        "reply": cutter.shrink(shown.reply, last, "reply", level.whole),
        "symptom": cutter.shrink(shown.symptom, 0, "symptom", level.whole),
    }
    if shown.trajectory is not None:
        update["trajectory"] = cutter.cut_trajectory(shown.trajectory)
        update["trajectory"] |= cutter.tell_foreign(brief.trajectory or {}, update["trajectory"])
    cut = shown.model_copy(update=update)
    return Trimmed(cut, cutter.cuts, count_brief(cut))


def _leave_out(trimmed: Trimmed) -> Trimmed:
    """The case without its trajectory, which is said there."""
    if trimmed.brief.trajectory is None:
        return trimmed
    cutter = _Cutter(trimmed.brief.id, LEVELS[-1], frozenset(), list(trimmed.cuts))
    missing = _length(trimmed.brief.trajectory)
    cutter.note(0, "trajectory", missing)
    said = {"left_out": [f"[… {missing:,} characters cut …]"]}
    cut = trimmed.brief.model_copy(update={"trajectory": said})
    return Trimmed(cut, cutter.cuts, count_brief(cut))


@dataclass
class _Cutter:
    """One pass over a case."""

    case: str
    level: Level
    matter: frozenset[int]
    cuts: list[dict[str, Any]] = field(default_factory=list)

    def cut_trajectory(self, trajectory: Mapping[str, Any]) -> dict[str, Any]:
        # A source may say more than the format has.
        cut = {
            key: self.shrink(value, 0, key, self.level.whole)
            for key, value in trajectory.items()
            if key not in _TURNED
        }
        cut |= {part: list(_rows(trajectory, part)) for part in _TURNED if part in trajectory}
        left_out: set[int] = set()
        for part in _TURNED:
            if part in cut:
                left_out |= {_turn(row) for row in cut[part] if not self._stays(_turn(row))}
                rows = [row for row in cut[part] if self._stays(_turn(row))]
                if self.level.is_short:
                    # The end tells more than the beginning.
                    rows = self._first(rows[::-1], 0, part)[::-1]
                cut[part] = [self._shrink_row(part, row) for row in rows]
        gaps = list(_ranges(left_out - {0}))
        if gaps:
            cut["left_out"] = [_say_turns(first, last) for first, last in gaps]
            self.cuts += [{"case": int_or_text(self.case), "turns": [first, last]} for first, last in gaps]
        return cut

    def tell_foreign(self, trajectory: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
        """What is said where a trajectory has more than its format, none of which is shown; noted as one cut."""
        foreign = {key: value for key, value in trajectory.items() if value and key not in _FORMAT}
        missing = _length(foreign) if foreign else 0
        if missing <= SLACK:
            return {}
        names = ", ".join(key[:LONGEST_NAME] for key in sorted(foreign)[:ENTRIES])
        self.note(0, names, missing)
        return {"left_out": [*shown.get("left_out", []), f"[{names}: {missing:,} characters cut]"]}

    def shrink(self, value: Any, turn: int, part: str, limit: int | None) -> Any:
        """The value with its long texts cut to `limit` characters each, noted under `part`."""
        if limit is None:
            return value
        before = _length(value)
        cut = _shrink(value, limit)
        # Many short texts make a long value too.
        if _length(cut) > 3 * limit + SLACK and not isinstance(cut, str):
            cut = _clip(json.dumps(value, ensure_ascii=False), 2 * limit)
        missing = before - _length(cut)
        if missing > 0:
            self.note(turn, part, missing)
        return cut

    def shrink_rows(self, rows: Sequence[dict[str, str]], part: str) -> list[dict[str, str]]:
        """The first entries of a list, each with its texts cut."""
        if self.level.whole is None:
            return list(rows)
        kept = self._first(rows, 0, part)
        return [self.shrink_texts(row, part) for row in kept]

    def shrink_texts(self, texts: Mapping[str, str], part: str) -> dict[str, str]:
        """The first texts, each cut."""
        if self.level.whole is None:
            return dict(texts)
        names = self._first(list(texts), 0, part)
        return {name: str(self.shrink(texts[name], 0, part, self.level.whole)) for name in names}

    def note(self, turn: int, part: str, characters: int) -> None:
        """List for people that so many characters are missing."""
        entry = {"case": int_or_text(self.case), "turn": turn, "part": part, "characters": characters}
        self.cuts.append(entry)

    def _first(self, rows: Sequence[Row], turn: int, part: str) -> list[Row]:
        """The first entries of a list, the rest noted."""
        if len(rows) > ENTRIES:
            self.note(turn, part, _length(list(rows[ENTRIES:])))
        return list(rows[:ENTRIES])

    def _stays(self, turn: int) -> bool:
        reach = self.level.reach
        if reach is None or turn == 0:
            return True
        return any(abs(turn - other) <= reach for other in self.matter)

    def _shrink_row(self, part: str, row: Mapping[str, Any]) -> dict[str, Any]:
        turn = _turn(row)
        limit = self.level.whole if turn in self.matter else self.level.other
        what = str(row.get("name") or row.get("role") or part)
        return {
            key: self.shrink(value, turn, f"{what} {key}", limit) if key not in ("turn", "role") else value
            for key, value in row.items()
        }


def int_or_text(case: str) -> int | str:
    """The id of a case as people's pages have it."""
    return int(case) if case.isdecimal() else case


def _strip_call(call: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("turn", "name", "arguments", "result", "error", "fault")
    return {key: call[key] for key in kept if call.get(key) not in (None, "")}


def _strip_model_call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {key: call[key] for key in ("turn", "reasoning") if call.get(key)}


def _messages(trajectory: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages but the prompt, each with its turn; of tool calls only those that stand nowhere else."""
    numbered = list(_numbered(_rows(trajectory, "messages")))
    if "tool_calls" not in trajectory:
        return [{key: value for key, value in row.items() if value is not None} for row in numbered]
    said = [row for row in numbered if row.get("role") in {"user", "assistant"} and row.get("content")]
    # The only question and the only answer stand in the request and the reply.
    if sum(row["role"] == "user" for row in said) <= 1 and not _is_talkative(said):
        return []
    return [{key: row[key] for key in ("turn", "role", "content")} for row in said]


def _is_talkative(said: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the model said more than its reply: an answer that a hook sent back, words beside its calls."""
    return len([row for row in said if row["role"] == "assistant"]) > 1


def _numbered(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    turn = 0
    for message in messages:
        turn += message.get("role") == "assistant"
        if message.get("role") != "system":
            yield {"turn": turn, **{key: value for key, value in message.items() if key != "turn"}}


def _shrink(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return _clip(value, limit)
    if isinstance(value, list):
        if len(value) <= ENTRIES:
            return [_shrink(entry, limit) for entry in value]
        missing = len(value) - ENTRIES
        return [*(_shrink(entry, limit) for entry in value[:ENTRIES]), f"[… {missing:,} entries left out …]"]
    if isinstance(value, dict):
        return {key: _shrink(entry, limit) for key, entry in value.items()}
    return value


def _clip(text: str, limit: int) -> str:
    """The beginning and the end of a text, and between them how much is missing."""
    missing = len(text) - limit
    if missing <= SLACK:
        return text
    head = limit * 2 // 3
    return f"{text[:head]}[… {missing:,} characters cut …]{text[len(text) - (limit - head) :]}"


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value, ensure_ascii=False))


def _ranges(turns: set[int]) -> Iterator[tuple[int, int]]:
    first = last = 0
    for turn in sorted(turns):
        if first and turn != last + 1:
            yield first, last
        first = turn if not first or turn != last + 1 else first
        last = turn
    if first:
        yield first, last


def _say_turns(first: int, last: int) -> str:
    return f"[turn {first} left out]" if first == last else f"[turns {first}-{last} left out]"


def _last_turn(trajectory: Mapping[str, Any]) -> int:
    rows = [row for part in ("tool_calls", "messages", "calls") for row in _rows(trajectory, part)]
    return max((_turn(row) for row in rows), default=0)


def _turn(row: Mapping[str, Any]) -> int:
    turn = row.get("turn")
    return turn if isinstance(turn, int) and not isinstance(turn, bool) else 0


def _rows(trajectory: Mapping[str, Any], part: str) -> list[Mapping[str, Any]]:
    rows = trajectory.get(part)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
