"""The rehearsal judge: loads the rubric skills, then compares the reply with the material that its prompt shows."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evolution.adapters.rehearsal.policy import Turn
from evolution.adapters.rehearsal.promises import absolute_promises, claims, squeeze
from evolution.adapters.rehearsal.reading import LOAD_SKILL, items, read_situation, sections
from evolution.adapters.rehearsal.rules import QUOTED
from evolution.adapters.rehearsal.text import NUMBER, is_chinese, shared
from harness_repo.runtime.chat import ChatRequest, ToolCall

DATA = re.compile(r'<data name="(\w+)">\s*(.*?)\s*</data>', re.DOTALL)
ABSOLUTE = re.compile(r"绝对化|absolute", re.IGNORECASE)
LINK_NUMBER = re.compile(r"\d+\s*号(?:链接)?|链接\s*\d+|\blinks?\s*#?\d+|#\d+", re.IGNORECASE)


WRONG_LANGUAGE = {
    "en": "the viewer wrote English, the reply is Chinese",
    "zh": "观众说中文，回复却是英文",
}


@dataclass(frozen=True)
class Material:
    """What the judge is shown of one case."""

    case: dict[str, Any]
    reply: str
    evidence: Any
    facts: list[dict[str, Any]]
    forbidden: list[dict[str, Any]]
    language: str
    # what the simulated user said, in a conversation
    said: list[str]
    # phrases that the loaded rubrics call absolute promises
    absolute: list[str]

    def danmaku(self) -> list[str]:
        """The viewers' texts."""
        request = self.case.get("request") or {}
        return [str(item.get("text", "")) for item in request.get("danmaku", []) if isinstance(item, dict)]

    def sources(self) -> str:
        """All that a claim may rest on, as one text: tool results, room, products, FAQ, danmaku, what the user said."""
        return _plain([self.evidence, self.case.get("context"), self.case.get("request"), *self.said])

    def shop_sources(self) -> str:
        """The same without what the viewers say: that viewers ask for a promise does not make it true."""
        return _plain([self.evidence, self.case.get("context")])


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a reply."""

    kind: str
    text: str


def answer_as_judge(request: ChatRequest) -> Turn:
    """One turn of the judge: all rubrics at once, then the scores as JSON."""
    situation = read_situation(request.messages, request.tools)
    missing = [skill.name for skill in situation.skills if skill.name not in situation.bodies]
    if missing and LOAD_SKILL in situation.tools:
        calls = [
            ToolCall(f"call_{i}", LOAD_SKILL, json.dumps({"name": n})) for i, n in enumerate(missing, start=1)
        ]
        return Turn(None, tuple(calls))
    material = read_material(request.messages, situation.bodies.values())
    return Turn(json.dumps(score(material), ensure_ascii=False))


def read_material(messages: Sequence[dict[str, Any]], rubrics: Any) -> Material:
    """Read the data blocks of the prompt and the absolute promises that the rubrics quote."""
    text = "\n".join(str(m.get("content") or "") for m in messages if m.get("role") in {"system", "user"})
    blocks = {name: _parsed(body) for name, body in DATA.findall(text)}
    expected = blocks.get("expected")
    expected = expected if isinstance(expected, dict) else {}
    case = blocks.get("case")
    return Material(
        case=case if isinstance(case, dict) else {},
        reply=str(blocks.get("reply") or ""),
        evidence=blocks.get("evidence"),
        facts=list(expected.get("facts") or []),
        forbidden=list(expected.get("forbidden") or []),
        language=str(expected.get("language") or ""),
        said=_said(blocks.get("conversation")),
        absolute=[phrase for body in rubrics for phrase in _absolute_phrases(body)],
    )


def _said(conversation: Any) -> list[str]:
    """The user's lines in a conversation."""
    turns = conversation if isinstance(conversation, list) else []
    return [str(turn.get("user") or "") for turn in turns if isinstance(turn, dict)]


def score(material: Material) -> dict[str, Any]:
    """The scores with reasons and findings, in the shape of the judge harness's reply_schema."""
    forbidden = list(_forbidden_claims(material))
    known = {finding.text for finding in forbidden}
    wrong = [*forbidden, *(finding for finding in _unsupported(material) if finding.text not in known)]
    missing = list(_missing_facts(material))
    capping = [*_wrong_language(material), *_unanswered(material)]
    return {
        "accuracy": 0 if wrong else 1,
        "effectiveness": _effectiveness(material, missing, capping),
        "reasons": {
            "accuracy": _accuracy_reason(material, wrong),
            "effectiveness": _effectiveness_reason(material, missing, capping),
        },
        "findings": [{"kind": f.kind, "text": f.text} for f in [*wrong, *missing, *capping]],
    }


def _forbidden_claims(material: Material) -> Iterator[Finding]:
    for claim in material.forbidden:
        said = next((text for text in claim.get("match", []) if claims(material.reply, str(text))), None)
        if said is not None:
            yield Finding("forbidden_claim", _quoted_clause(material.reply, str(said)))


def _unsupported(material: Material) -> Iterator[Finding]:
    """Clauses with a number or an absolute promise that nothing bears out, each once."""
    sources = material.sources()
    known = set(NUMBER.findall(sources))
    numbers = [n for n in NUMBER.findall(LINK_NUMBER.sub(" ", material.reply)) if n not in known]
    named = [p for p in material.absolute if claims(material.reply, p) and p not in sources]
    said = [*numbers, *named, *absolute_promises(material.reply, material.shop_sources())]
    for clause in dict.fromkeys(_quoted_clause(material.reply, text) for text in said):
        yield Finding("unsupported_claim", clause)


def _missing_facts(material: Material) -> Iterator[Finding]:
    reply = squeeze(material.reply)
    for fact in material.facts:
        if not any(
            _stated(reply, squeeze(str(text))) for text in fact.get("accept") or [fact.get("fact", "")]
        ):
            yield Finding("missing_fact", str(fact.get("fact", "")))


def _wrong_language(material: Material) -> Iterator[Finding]:
    if (
        material.reply
        and material.language in {"zh", "en"}
        and is_chinese(material.reply) != (material.language == "zh")
    ):
        yield Finding("wrong_language", WRONG_LANGUAGE[material.language])


def _unanswered(material: Material) -> Iterator[Finding]:
    """With several danmaku: those none of whose facts and words the reply has."""
    texts = material.danmaku()
    if len(texts) < 2:
        return
    reply = squeeze(material.reply)
    stated = [
        f for f in material.facts if any(_stated(reply, squeeze(str(a))) for a in f.get("accept") or [])
    ]
    owners = [_owner(fact, texts) for fact in material.facts]
    for i, text in enumerate(texts):
        facts = [fact for fact, owner in zip(material.facts, owners, strict=True) if owner == i]
        if facts and not any(fact in stated for fact in facts):
            yield Finding("unanswered", text)


def _owner(fact: dict[str, Any], texts: Sequence[str]) -> int:
    """The danmaku that a fact answers: the one it shares most words with; -1 if none."""
    likeness = [len(shared(str(fact.get("fact", "")), text)) for text in texts]
    best = max(range(len(texts)), key=lambda i: (likeness[i], -i))
    return best if likeness[best] else -1


def _effectiveness(material: Material, missing: Sequence[Finding], capping: Sequence[Finding]) -> float:
    if not material.reply:
        return 0
    if not missing:
        value: float = 1
    else:
        value = 0.5 if len(missing) < len(material.facts) else 0
    return min(value, 0.5) if capping else value


def _accuracy_reason(material: Material, wrong: Sequence[Finding]) -> str:
    english = material.language == "en"
    if not wrong:
        return (
            f'Every claim of "{_first_words(material.reply)}" is supported by the evidence.'
            if english
            else f"「{_first_words(material.reply)}」里的说法都有依据。"
        )
    quotes = list(dict.fromkeys(finding.text for finding in wrong))
    if english:
        return (
            "The reply says "
            + ", ".join(f'"{q}"' for q in quotes)
            + ", which it must not promise or has no evidence for."
        )
    return "回复说了" + "、".join(f"「{q}」" for q in quotes) + "，属于不许说的承诺或没有依据的说法。"


def _effectiveness_reason(material: Material, missing: Sequence[Finding], capping: Sequence[Finding]) -> str:
    english = material.language == "en"
    said = _first_words(material.reply)
    if not missing and not capping:
        return f'"{said}" states every expected fact.' if english else f"「{said}」把应答事实说全了。"
    parts = [_lack(finding, english=english) for finding in [*missing, *capping]]
    if english:
        return f'The reply "{said}" ' + "; ".join(parts) + "."
    return f"回复「{said}」" + "；".join(parts) + "。"


def _lack(finding: Finding, *, english: bool) -> str:
    zh = {
        "missing_fact": "没有说到：{}",
        "wrong_language": "没有用观众的语言",
        "unanswered": "没有回应弹幕「{}」",
    }
    en = {
        "missing_fact": "does not state: {}",
        "wrong_language": "is not in the viewer's language",
        "unanswered": 'leaves "{}" unanswered',
    }
    return (en if english else zh)[finding.kind].format(finding.text)


def _stated(reply: str, wanted: str) -> bool:
    """Whether the squeezed reply has the squeezed text; a number must stand alone: 8 is not in 89."""
    if not wanted:
        return False
    before = r"(?<![\d.])" if wanted[0].isdigit() else ""
    after = r"(?!\d|\.\d)" if wanted[-1].isdigit() else ""
    return re.search(before + re.escape(wanted) + after, reply) is not None


def _quoted_clause(reply: str, said: str) -> str:
    """The clause of the reply that says it, as the reply has it; the whole reply if it runs over clauses."""
    clauses = re.split(r"[，。！？；,!?;]", reply)
    found = next((clause for clause in clauses if squeeze(said) in squeeze(clause)), reply)
    return found.strip()


def _first_words(reply: str) -> str:
    return reply if len(reply) <= 40 else reply[:40]


def _absolute_phrases(body: str) -> list[str]:
    lines = [item for _, block in sections(body) for item in items(block) if ABSOLUTE.search(item)]
    return ["".join(groups) for line in lines for groups in QUOTED.findall(line)]


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value is not None else ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
