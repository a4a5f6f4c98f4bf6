"""Names a cluster by the terms that tell it from the others (class-based TF-IDF), until a diagnosis names it.

A term's weight is the share of the cluster's texts that have it, times log(all texts / texts that have it).
Chinese is taken in runs of two to six characters, everything else in words. What stands word for word in
several clusters, such as the verdict of a check or the kind of a finding, names none of them; what most texts
of one cluster say word for word is its name.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

TERMS = 3
# A run of characters that a term is a piece of is shown whole, up to this length.
LONGEST_RUN = 10
# A statement with this share of its texts in one cluster is that cluster's; else it is nobody's.
OWN_SHARE = 0.8
LONGEST_STATEMENT = 60
# Words that say nothing about a failure.
_EMPTY_WORDS = """
about after all also and any are as at be been but by can could did do does don't for from get had has have
help her here hello hey hi his how i'd i'll i'm i've into is isn't it's its just let like may might need not now
off once one only our out please really should so some than thank thanks that that's the their them then
there these they this those too was want were what when where which who why will with would yes yet you
you're your
"""
# Words of judges and checks: they say that something failed, and the viewers' words say what.
_VERDICT_WORDS = """
chinese claim claims english error evidence fact facts forbidden language missing other reply replies reward
unanswered unsupported viewer viewers wrong wrote
"""
_VERDICT = frozenset(_VERDICT_WORDS.split())
_EMPTY = _VERDICT | frozenset(_EMPTY_WORDS.split())
# Characters that a Chinese term neither starts nor ends with.
_PARTICLES = frozenset(
    "一的了吗呢吧啊呀哦哈是在有和与就都也还很这那个么怎什哪几能可会要我你他她它们请把给到不没多少为以"
)
_RUN = re.compile(r"[\u4e00-\u9fff]+|[a-z][a-z'-]{2,}")
_WHOLE_RUN = re.compile(r"[\u4e00-\u9fff0-9]+")
# Findings of one case are joined by a semicolon, and statements of the same kind recur among them.
_STATEMENT = re.compile(r"[\n；;]")
_CLOSING = "的了吗呢吧啊呀哦哈啦哟"


def name_clusters(texts: Sequence[str], labels: Sequence[int]) -> dict[int, str]:
    """Return a name for each label but -1, no two alike; a cluster without a telling term has the empty name."""
    owners = _own_statements(texts, labels)
    told = ["\n".join(s for s in _statements(text) if s in owners) or text for text in texts]
    found = [_terms(text) for text in told]
    everywhere = Counter(term for terms in found for term in terms)
    names: dict[int, str] = {}
    for label in sorted(set(labels) - {-1}):
        own = [row for row, other in enumerate(labels) if other == label]
        shown = _common_statement([told[row] for row in own])
        if not shown:
            terms = _rank_terms([found[row] for row in own], everywhere, len(texts))
            shown = list(dict.fromkeys(_whole(term, [told[row] for row in own]) for term in terms))
        names[label] = _distinct(shown, set(names.values()))
    return names


def _own_statements(texts: Sequence[str], labels: Sequence[int]) -> frozenset[str]:
    """The statements that belong to one cluster: nearly all texts that have it are in there."""
    owners: dict[str, Counter[int]] = {}
    for text, label in zip(texts, labels, strict=True):
        for statement in set(_statements(text)):
            owners.setdefault(statement, Counter())[label] += label != -1
    return frozenset(
        statement
        for statement, count in owners.items()
        if max(count.values()) >= OWN_SHARE * count.total() and not set(statement.lower().split()) <= _VERDICT
    )


def _common_statement(texts: Sequence[str]) -> list[str]:
    """What more than half of the texts of a cluster say word for word, if anything and if it is short."""
    counts = Counter(statement for text in texts for statement in set(_statements(text)))
    statement, count = min(counts.items(), key=lambda entry: (-entry[1], entry[0]), default=("", 0))
    is_common = 2 * count > len(texts) > 2 and len(statement) <= LONGEST_STATEMENT
    return [statement.rstrip(_CLOSING)] if is_common else []


def _statements(text: str) -> list[str]:
    return [part.strip() for part in _STATEMENT.split(text) if part.strip()]


def _rank_terms(members: Sequence[set[str]], everywhere: Counter[str], texts: int) -> list[str]:
    """The terms that name the cluster, most telling first, none of them a piece of another."""
    here = Counter(term for terms in members for term in terms)
    # A term of one text names that text, not the cluster.
    shared = [
        term for term, count in here.items() if count >= min(2, len(members)) and everywhere[term] < texts
    ]

    def weight(term: str) -> float:
        length = len(term) if term[0] >= "\u4e00" else 2
        return here[term] / len(members) * math.log(texts / everywhere[term]) * math.sqrt(length)

    chosen: list[str] = []
    for term in sorted(shared, key=lambda term: (-weight(term), term)):
        if not any(_overlap(term, other) for other in chosen):
            chosen.append(term)
        if len(chosen) == 2 * TERMS:
            break
    return chosen


def _distinct(terms: Sequence[str], taken: Iterable[str]) -> str:
    """The first terms joined; more of them, or a number, when another cluster is called so."""
    names = [" · ".join(terms[:count]) for count in range(TERMS, len(terms) + 1)] or [" · ".join(terms)]
    free = (name for name in _numbered(names) if name not in set(taken))
    return next(free) if terms else ""


def _numbered(names: Sequence[str]) -> Iterator[str]:
    yield from names
    for number in range(2, 1_000_000):
        yield f"{names[0]} ({number})"


def _whole(term: str, texts: Sequence[str]) -> str:
    """The run that a Chinese term is a piece of, when most texts that have the term have that run."""
    if term[0] < "\u4e00":
        return term
    runs = [
        next((run.strip(_CLOSING) for run in _WHOLE_RUN.findall(text) if term in run), "") for text in texts
    ]
    counts = Counter(run for run in runs if run)
    run, count = counts.most_common(1)[0] if counts else (term, 0)
    return run if 2 * count > counts.total() and len(run) <= LONGEST_RUN else term


def _terms(text: str) -> set[str]:
    terms: set[str] = set()
    for run in _RUN.findall(text.lower()):
        if run[0] < "\u4e00":
            terms |= {run} - _EMPTY
            continue
        for length in range(2, 7):
            pieces = (run[start : start + length] for start in range(len(run) - length + 1))
            terms |= {piece for piece in pieces if not _PARTICLES & {piece[0], piece[-1]}}
    return terms


def _overlap(term: str, other: str) -> bool:
    """Pieces of one phrase share two characters in a row; words only count whole."""
    if term[0] < "\u4e00" or other[0] < "\u4e00":
        return term == other
    return any(term[start : start + 2] in other for start in range(len(term) - 1))
