"""Composes the reply: what the skills tell to state, from what the tools returned, under the attended rules."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evolution.adapters.rehearsal.arguments import links_of, place_in
from evolution.adapters.rehearsal.habits import habit, invention
from evolution.adapters.rehearsal.lexicon import meanings
from evolution.adapters.rehearsal.reading import Label, Situation, ToolResult
from evolution.adapters.rehearsal.rules import Attention
from evolution.adapters.rehearsal.skill_text import fields_named, script_for, tools_named
from evolution.adapters.rehearsal.speech import (
    close_sentence,
    in_language,
    is_known,
    join_clauses,
    say_field,
    shorten,
    spoken,
)
from evolution.adapters.rehearsal.text import HAN, Index, digest, is_chinese, overlaps, shared, words

# How much of the danmaku a merchant's question must share for its answer to be used.
FAQ_SHARE = 0.4
# Out of a hundred danmaku, for how many a field is stated that no skill names but the danmaku asks for.
NOTICES = 50
REGION = "#delivery.region"
# People stop listening after so many.
MOST_FIELDS = 3
COMMON_CHARACTERS = frozenset("的了吗呢不能会有这个是什么怎多少几可以要用到一下")
PLACEHOLDER = re.compile(r"\{\s*(\w+)\s*\}")
CLAUSE_END = re.compile(r"(?<=[，,。！!；;])")

VERIFY = {True: "这个我帮你核实一下", False: "let me check that for you"}

SCRIPT_MEANINGS = {
    "#talk.complain": "Sorry about that.",
    "#outside.other": "Sorry, I can't help with that, let's get back to the products in our live room.",
    "#talk.identity": "I am a digital host.",
    "#talk.greet": "Hello and welcome to our live room!",
    "#talk.thanks": "Thank you so much for your support!",
    "#talk.bye": "Good night, see you next time!",
}


@dataclass(frozen=True)
class Answer:
    """One danmaku with the skills loaded for it."""

    danmaku: str
    skills: Sequence[str]


def compose_reply(answers: Sequence[Answer], situation: Situation, attention: Attention) -> str:
    """The whole reply; clauses at the end are dropped when an attended rule limits the length."""
    parts = [_Speaker(answer, situation, attention).speak() for answer in answers]
    space = "" if all(is_chinese(part) for part in parts) else " "
    return shorten(space.join(parts), attention.max_characters())


class _Speaker:
    """Puts together the reply to one danmaku."""

    def __init__(self, answer: Answer, situation: Situation, attention: Attention) -> None:
        self.danmaku = answer.danmaku
        self.situation = situation
        self.attention = attention
        self.bodies = [situation.bodies.get(name, "") for name in answer.skills]
        self.chinese = is_chinese(answer.danmaku) or not attention.follows_language()

    def speak(self) -> str:
        clauses = self._content()
        extra = habit(self.danmaku, chinese=self.chinese, forbids=self.attention.forbids)
        if extra and not any(extra in clause for clause in clauses):
            clauses.append(extra)
        return close_sentence(join_clauses(clauses, chinese=self.chinese), chinese=self.chinese)

    def _content(self) -> list[str]:
        answered = self._faq()
        called = self._results()
        script = next((s for body in self.bodies if (s := script_for(body, self.danmaku))), None)
        if script is not None:
            filled = self._fill(script, called)
            return [*answered, filled] if filled else [*answered, self._unknown()]
        if not self._tools():
            return answered or [self._unknown()]
        stated = [clause for link in self._links(called) for clause in self._link_clauses(link, called)]
        missing = self._asked_but_missing(called) or not self._covered([*answered, *stated])
        return [*answered, *stated, *([self._unknown()] if missing else [])]

    def _tools(self) -> list[str]:
        known = self.situation.tools
        return list(dict.fromkeys(n for body in self.bodies for n in tools_named(body, known, self.danmaku)))

    def _results(self) -> list[ToolResult]:
        """What the tools of these skills answered for the links of this danmaku."""
        links = links_of(self.danmaku, self.situation)
        wanted = self._tools()
        return [
            result
            for result in self.situation.results
            if result.name in wanted
            and result.arguments.get("link_id", links[0] if links else None) in [*links, None]
        ]

    def _links(self, called: Sequence[ToolResult]) -> list[int | None]:
        links = [result.arguments.get("link_id") for result in called if result.result is not None]
        return list(dict.fromkeys(links))

    def _link_clauses(self, link: int | None, called: Sequence[ToolResult]) -> list[str]:
        values: dict[str, Any] = {}
        labels: dict[str, Label] = {}
        for result in called:
            if result.arguments.get("link_id") == link and result.result is not None:
                values = {**result.result, **values}
                labels = {**self.situation.tools[result.name].labels, **labels}
        clauses = [self._clause(name, values[name], labels) for name in self._fields(values, labels)]
        if not clauses:
            return []
        return [f"{self._lead(link, values)}{clauses[0]}", *clauses[1:]]

    def _fields(self, values: Mapping[str, Any], labels: Mapping[str, Label]) -> list[str]:
        """The fields to state, at most a few: of those that the skills name, the ones asked for first."""
        named = self._named({*values, *labels})
        if digest(f"notice/{self.danmaku}", 100) < NOTICES:
            named += [name for name in values if name not in named and self._asks_for(name, labels)]
        if not named:
            named = [name for name in values if name != "name"][:2]
        present = [name for name in named if name != "name" and is_known(values.get(name))]
        wanted = {name: self._interest(name, values[name], labels) for name in present}
        asked = [name for name in present if wanted[name]]
        if asked and self.attention.max_characters() is not None:
            # Told to be short: only what was asked.
            present = asked
        return sorted(present, key=lambda name: -wanted[name])[:MOST_FIELDS]

    def _interest(self, name: str, value: Any, labels: Mapping[str, Label]) -> int:
        """How much the danmaku is about a field: 2 for its label, and 1 for words of its value."""
        return 2 * self._asks_for(name, labels) + bool(shared(spoken(value, chinese=True), self.danmaku))

    def _named(self, known: set[str]) -> list[str]:
        return list(dict.fromkeys(n for body in self.bodies for n in fields_named(body, known, self.danmaku)))

    def _asks_for(self, name: str, labels: Mapping[str, Label]) -> bool:
        label = labels.get(name)
        if label is None:
            return False
        # Who names a place asks what holds for it.
        local = REGION in meanings(label.zh) and place_in(self.danmaku) is not None
        return local or overlaps(label.zh, self.danmaku)

    def _asked_but_missing(self, called: Sequence[ToolResult]) -> bool:
        """Whether a call failed, or a field asked for came back empty."""
        return any(result.result is None or self._lacks(result.name, result.result) for result in called)

    def _covered(self, clauses: Sequence[str]) -> bool:
        """Whether some clause is about what the danmaku asks.

        One that asks for nothing known needs only a clause, unless a rule tells to admit gaps.
        """
        if not clauses:
            return False
        if not meanings(self.danmaku) and not self.attention.admits_gaps():
            return True
        return any(overlaps(clause, self.danmaku) for clause in clauses)

    def _lacks(self, tool: str, values: Mapping[str, Any]) -> bool:
        labels = self.situation.tools[tool].labels
        asked = [name for name in self._named(set(labels)) if self._asks_for(name, labels)]
        return any(not is_known(values.get(name)) for name in asked)

    def _lead(self, link: int | None, values: Mapping[str, Any]) -> str:
        if link is None:
            return ""
        name = in_language(
            str(values.get("name") or self.situation.shelf.get(link, "")), chinese=self.chinese
        )
        return f"{link}号链接{name}，" if self.chinese else f"for link {link} ({name}), "

    def _clause(self, name: str, value: Any, labels: Mapping[str, Label]) -> str:
        label = labels.get(name, Label(name, name.replace("_", " ")))
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return self._closest_hit(value)
        return say_field(label, value, chinese=self.chinese)

    def _closest_hit(self, hits: Sequence[Mapping[str, Any]]) -> str:
        scores = Index.of(str(hit.get("question", "")) for hit in hits).scores(self.danmaku)
        best = max(range(len(hits)), key=lambda i: (scores[i], -i))
        return in_language(str(hits[best].get("answer", "")), chinese=self.chinese).rstrip("。.")

    def _fill(self, script: str, called: Sequence[ToolResult]) -> str:
        """The script with its placeholders filled, clauses without a value dropped; verbatim if it has none."""
        if not PLACEHOLDER.search(script):
            return script if self.chinese else _in_english(script)
        values = {
            name: value
            for result in called
            for name, value in (result.result or {}).items()
            if is_known(value)
        }
        for result in called:
            values.setdefault("link_id", result.arguments.get("link_id"))
        kept = [
            clause
            for clause in CLAUSE_END.split(script)
            if clause and all(is_known(values.get(name)) for name in PLACEHOLDER.findall(clause))
        ]
        if not any(PLACEHOLDER.search(clause) for clause in kept):
            return ""
        filled = "".join(kept)
        return PLACEHOLDER.sub(lambda match: spoken(values[match.group(1)], chinese=self.chinese), filled)

    def _faq(self) -> list[str]:
        """The answer of the merchant's question that is closest, if it is close."""
        likeness = [_faq_likeness(question, self.danmaku) for question, _ in self.situation.faq]
        best = max(range(len(likeness)), key=lambda i: (likeness[i], -i), default=None)
        if best is None or likeness[best] < FAQ_SHARE:
            return []
        return [in_language(self.situation.faq[best][1], chinese=self.chinese).rstrip("。.")]

    def _unknown(self) -> str:
        if self.attention.verifies():
            return VERIFY[self.chinese]
        return invention(self.danmaku, chinese=self.chinese, forbids=self.attention.forbids)


def _in_english(script: str) -> str:
    """A Chinese script line in English, as far as its meaning is known; the model is no translator."""
    found = meanings(script)
    lines = [line for meaning, line in SCRIPT_MEANINGS.items() if meaning in found]
    return " ".join(lines[:2]) if lines and is_chinese(script) else script


def _faq_likeness(question: str, danmaku: str) -> float:
    """The share of the question's content, in characters and words, that the danmaku has too."""
    asked = set("".join(HAN.findall(question))) - COMMON_CHARACTERS | words(question)
    said = set("".join(HAN.findall(danmaku))) | words(danmaku)
    return len(asked & said) / len(asked) if asked else 0.0
