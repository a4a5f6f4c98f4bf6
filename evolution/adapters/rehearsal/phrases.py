"""The words and fields that plans are made of: viewers' phrases, claims made, result fields that have the facts."""

import re
from collections import Counter
from collections.abc import Sequence

from evolution.adapters.rehearsal.briefs import Brief, HarnessView, texts_of, values_as_text
from evolution.adapters.rehearsal.lexicon import meanings, mentioned
from evolution.adapters.rehearsal.text import bigrams, clip, shared, words

MAX_CLAIMS = 6
MAX_PHRASES = 8
MAX_PHRASE = 40
MAX_FIELDS = 6

_END_OF_CLAIM = re.compile(r"[哈啊哦呀。.！! ]+$")


def common_claims(cases: Sequence[Brief]) -> list[str]:
    """The claims that the cases made, most frequent first, in the reply's words."""
    found = Counter(_END_OF_CLAIM.sub("", text) for case in cases for text in case.promises())
    ranked = [claim for claim, _ in sorted(found.items(), key=lambda entry: (-entry[1], entry[0])) if claim]
    return ranked[:MAX_CLAIMS]


def viewers_phrases(cases: Sequence[Brief], others: str = "", own: str = "") -> list[str]:
    """The viewers' own words for what they ask about, for a description; whole clauses where none is known.

    Words for what the texts of `others` already cover are left out, unless `own` covers it too.
    """
    taken = meanings(others) - meanings(own)
    found = [phrase for text in texts_of(cases) for phrase in mentioned(text) or [_first_clause(text)]]
    ranked = sorted(Counter(found).items(), key=lambda entry: -entry[1])
    telling = [
        phrase for phrase, _ in ranked if bigrams(phrase) | words(phrase) and not meanings(phrase) & taken
    ]
    return telling[:MAX_PHRASES]


def descriptions(view: HarnessView, *, but: str = "") -> str:
    """The descriptions of all skills but one, as one text."""
    return " ".join(skill.description for name, skill in sorted(view.harness.skills.items()) if name != but)


def ranked_fields(cases: Sequence[Brief], labels: dict[str, str]) -> list[str]:
    """The fields of a tool, those first whose label the cases have."""
    asked = " ".join(text for case in cases for text in [case.danmaku(), *case.texts("missing_fact")])
    names = [name for name in labels if name != "name"]
    return sorted(names, key=lambda name: not shared(labels[name], asked))[:MAX_FIELDS]


def fields_with(cases: Sequence[Brief], view: HarnessView) -> list[str]:
    """The result fields that have the missing facts, most frequent first."""
    found = Counter(name for case in cases for name in matching_fields(case))
    known = all_labels(view)
    ranked = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))
    return [name for name, _ in ranked if name in known]


def matching_fields(case: Brief) -> list[str]:
    """The result field closest to each missing fact; facts that none is close to are left out."""
    results = case.results()
    fields = [_closest_field(fact, results) for fact in case.texts("missing_fact")]
    return [name for name in fields if name]


def all_labels(view: HarnessView) -> dict[str, str]:
    """Result field -> label, over all tools."""
    return {name: label for tool in view.harness.tools for name, label in view.labels(tool).items()}


def topics_of(view: HarnessView, tool: str) -> str:
    """The list after the colon of the tool's description: what it answers."""
    known = view.harness.tools[tool].description.split("。")[0]
    return known.partition("：")[2].strip().removesuffix("怎么处理")


def tool_stem(tool: str) -> str:
    """The tool's name without the words that all have."""
    return re.sub(r"^get_|_info$|_policy$", "", tool)


def free_path(view: HarnessView, pattern: str, stem: str) -> str:
    """The pattern filled with the stem, numbered when the harness has such a file already."""
    candidates = [stem, *(f"{stem}-{n}" for n in range(2, 100))]
    return next(path for name in candidates if (path := pattern.format(name)) not in view.files)


def _first_clause(text: str) -> str:
    clauses = [clause.strip() for clause in re.split(r"[，。！？,!?]|\s+(?=[\u4e00-\u9fff])", text)]
    first = next((clause for clause in clauses if clause), "")
    return clip(first, MAX_PHRASE).rstrip("…")


def _closest_field(fact: str, results: dict[str, object]) -> str | None:
    likeness = {
        name: _likeness(fact, values_as_text(value)) for name, value in results.items() if name != "name"
    }
    best = max(sorted(likeness), key=lambda name: likeness[name], default=None)
    return best if best is not None and likeness[best] >= 2 else None


def _likeness(fact: str, value: str) -> float:
    numbers = set(re.findall(r"\d+(?:\.\d+)?", fact)) & set(re.findall(r"\d+(?:\.\d+)?", value))
    return 2 * len(numbers) + len(shared(fact, value))
