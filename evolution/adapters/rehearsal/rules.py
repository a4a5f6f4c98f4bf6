"""Which rules the model has in mind, and what they make it do. Attention is limited: new rules push out old ones."""

import re
from dataclasses import dataclass

from evolution.adapters.rehearsal.lexicon import meanings
from evolution.adapters.rehearsal.reading import Situation, rule_items, sections
from evolution.adapters.rehearsal.text import shared

# How many rules are attended, newest first. The one number that makes piling up rules costly.
ATTENTION = 14

NEGATION = re.compile(
    r"不得|不要|不许|不准|不能|不可|不说|禁止|严禁|别说|别承诺|\bnever\b|\bdo not\b|\bdon't\b|\bmust not\b|\bno\b",
    re.IGNORECASE,
)
QUOTED = re.compile(r"「([^」]+)」|“([^”]+)”|\"([^\"]+)\"")
# A quoted phrase followed by one of these is an example of a kind, not the only thing meant.
GENERAL = re.compile(r"」\s*(?:这类|这样|之类|等)|such as|and the like", re.IGNORECASE)
VERIFY = re.compile(r"核实|编造|没查到|\bverify\b|\bcheck\b|\binvent\b|\bmake up\b", re.IGNORECASE)
EACH = re.compile(
    r"逐条|每条弹幕|每一条|每个问题|each (?:danmaku|comment|question|viewer|of them)", re.IGNORECASE
)
# What to do when the results have other things than the one that was asked for.
GAPS = re.compile(
    r"没有观众问的|别的信息顶上|instead of stating something else|not have what was asked", re.IGNORECASE
)
LANGUAGE = re.compile(
    r"观众的语言|同样的语言|相同的语言|同一种语言|英[文语].{0,16}英[文语]|viewer'?s (?:own )?language|same language"
    r"|(?:answer|reply) in english",
    re.IGNORECASE,
)
LENGTH = re.compile(r"(\d+)\s*(?:个?字|characters)", re.IGNORECASE)


@dataclass(frozen=True)
class Attention:
    """The rules that the model has in mind, newest first."""

    rules: tuple[str, ...]

    @classmethod
    def of(cls, situation: Situation) -> "Attention":
        """Hook messages first, then loaded skills (latest first), then the system prompt from its end."""
        newest = list(reversed(situation.retries))
        for body in reversed(situation.bodies.values()):
            newest += rule_items(sections(body))
        newest += reversed(situation.rules)
        return cls(tuple(newest[:ATTENTION]))

    def verifies(self) -> bool:
        """Whether a rule says to verify rather than to invent."""
        return any(VERIFY.search(rule) for rule in self.rules)

    def admits_gaps(self) -> bool:
        """Whether a rule says what to do when only other things were found than what was asked."""
        return any(GAPS.search(rule) for rule in self.rules)

    def answers_each(self) -> bool:
        """Whether a rule says to answer every danmaku."""
        return any(EACH.search(rule) for rule in self.rules)

    def follows_language(self) -> bool:
        """Whether a rule says to reply in the viewer's language."""
        return any(LANGUAGE.search(rule) for rule in self.rules)

    def max_characters(self) -> int | None:
        """The shortest length that a rule allows."""
        limits = [int(match.group(1)) for rule in self.rules if (match := LENGTH.search(rule))]
        return min(limits, default=None)

    def forbids(self, clause: str, topic: frozenset[str]) -> bool:
        """Whether a rule forbids the clause; `topic` is the clause's subject as meanings."""
        return any(_forbids(rule, clause, topic) for rule in self.rules)


def _forbids(rule: str, clause: str, topic: frozenset[str]) -> bool:
    if not NEGATION.search(rule):
        return False
    quotes = ["".join(groups) for groups in QUOTED.findall(rule)]
    if any(_same_claim(quote, clause) for quote in quotes):
        return True
    if quotes and not GENERAL.search(rule):
        return False
    return bool(meanings(rule) & topic) or len(shared(rule, clause)) >= 2


def _same_claim(quote: str, clause: str) -> bool:
    """Half of the shorter one's words in common."""
    if quote in clause or clause in quote:
        return True
    common = len(shared(quote, clause))
    smallest = min(len(shared(quote, quote)), len(shared(clause, clause)))
    return common >= max(2, smallest / 2)
