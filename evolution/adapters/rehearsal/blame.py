"""From the kind of finding to the part to blame and the changes to make, one plan per kind.

The sentences of `changes` are what the editor reads, and what a developer amends; `sentences.py` has their forms.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import Brief, HarnessView, texts_of, tool_text, values_as_text
from evolution.adapters.rehearsal.lexicon import meanings, mentioned
from evolution.adapters.rehearsal.text import Index, bigrams, shared, words

# From this many rules on, a claim is caught by a hook instead of one more rule.
LONG_LIST = 20
MAX_CLAIMS = 6
MAX_PHRASES = 8
MAX_PHRASE = 40
MAX_FIELDS = 6
# A tool fits a danmaku from this likeness on.
TOOL_FITS = 1.2

RULES = {
    "unsupported_claim": "工具没有返回的数字和承诺不要编造，查不到就说「这个我帮你核实一下」。",
    "wrong_language": "观众用英文提问，就用英文回复。",
    "unanswered": "同时来了几条弹幕时，逐条回应，一条都不能漏。",
}
CAUSES = {
    "unsupported_claim": "约束里没有被注意到的、要求查不到就核实的规则，模型用编的数字和承诺代替了核实。",
    "wrong_language": "约束里没有说用什么语言回复，模型一律用中文，英文观众看不懂。",
    "unanswered": "约束里没有要求逐条回应，几条弹幕合在一起时模型只回了第一条。",
}
# What good manners say, by what was missing.
MANNERS = {
    "歉": "不好意思给宝宝添麻烦了，您联系一下客服，主播这边也帮您反馈。",
    "数字人": "我是这个直播间的数字人主播，陪大家看商品。",
    "生日": "祝宝宝生日快乐，天天开心。",
    "关心": "宝宝辛苦了，早点休息，注意身体。",
    "谢": "谢谢宝宝的支持。",
    "道别": "好的宝宝，早点休息，拜拜，咱们下次见。",
    "打招呼": "欢迎宝宝来到直播间。",
    "医": "身体不舒服请尽快就医，听医生的，商品没有治疗作用，咱们接着看直播间的商品。",
}
DECLINE = "不好意思，这个主播这边帮不上忙，不方便回答，咱们还是看看直播间的商品，想了解哪个链接直接告诉我"


DECLINED = re.compile(r"帮不上|没法|不方便|婉拒|带回|就医|医生|医疗|医院|不给")


@dataclass(frozen=True)
class Cause:
    """Why a case fails; `subject` is the skill or the tool that it is about, if any."""

    kind: str
    subject: str = ""


@dataclass(frozen=True)
class Plan:
    """What is to blame and what to change."""

    part: str
    path: str
    hypothesis: str
    refuted_by: str
    changes: Sequence[str] = field(default_factory=list)
    wrong_turn: int | None = None
    # factor on the confidence
    certainty: float = 1.0


def plan_for_claims(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """A rule that quotes the claims; a hook when the list of rules is long already."""
    claims = common_claims(cases)
    path = view.rules_path()
    said = "、".join(f"「{claim}」" for claim in claims)
    if len(view.rules(path)) >= LONG_LIST:
        hook = free_path(view, "hooks/forbid_{}.yaml", _stem(cases, view))
        return Plan(
            "hook",
            hook,
            f"约束已经有 {len(view.rules(path))} 条，排在前面的规则模型注意不到，所以仍然说了{said}。",
            "如果把这些话的规则移到约束的最后一条，同样的弹幕仍然这样回复，这个判断就不成立。",
            [sentences.forbid_by_hook(hook, claims)],
        )
    return Plan(
        "prompt",
        path,
        f"约束里没有禁止这些承诺，模型在没有依据时顺口说了{said}。",
        "如果约束里加上这些话之后，同样的弹幕仍然这样回复，这个判断就不成立。",
        [sentences.add_rule(path, f"不要对观众说{said}。")],
    )


def plan_for_rule(kind: str, view: HarnessView) -> Plan:
    """The one rule that says what was not done."""
    path = view.rules_path()
    return Plan(
        "prompt",
        path,
        CAUSES[kind],
        "如果加上这条规则之后同样的弹幕仍然这样回复，这个判断就不成立。",
        [sentences.add_rule(path, RULES[kind])],
    )


def has_rule(kind: str, view: HarnessView) -> bool:
    """Whether the harness has the rule for the kind already."""
    return kind in RULES and RULES[kind] in view.rules(view.rules_path())


def plan_without_findings(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """Nothing was found by a judge: the symptom is all there is to go by."""
    path = view.rules_path()
    symptom = next((case.symptom for case in cases if case.symptom), "回复没有解决问题")
    rule = f"出现这种情况要先核对再操作：{' '.join(symptom.split())[:60]}"
    return Plan(
        "prompt",
        path,
        f"这些案例没有评测结论，只能从现象判断：{symptom[:120]}",
        "如果这些案例的首个错误步骤各不相同，它们就没有同一个原因。",
        [sentences.add_rule(path, rule)],
        certainty=0.5,
    )


def causes_of(case: Brief, view: HarnessView) -> set[Cause]:
    """What went wrong in one case, followed to the part of the harness that let it."""
    kinds = case.kinds()
    found = {Cause(kind) for kind in kinds & {"forbidden_claim", "wrong_language"}}
    if "unsupported_claim" in kinds and "forbidden_claim" not in kinds:
        found.add(Cause("unsupported_claim"))
    if "unanswered" in kinds and not has_rule("unanswered", view):
        # Facts are missing because whole danmaku are.
        return {*found, Cause("unanswered")}
    if "missing_fact" in kinds:
        found.add(_missing_cause(case, view))
    return {cause for cause in found if not has_rule(cause.kind, view)} or found


def _missing_cause(case: Brief, view: HarnessView) -> Cause:
    facts = " ".join(case.texts("missing_fact"))
    talked = [name for name in case.skills() if name in view.harness.skills and _only_talks(name, view)]
    if talked and any(word in facts for word in MANNERS):
        return Cause("script", talked[0])
    if DECLINED.search(facts) or any(tag.startswith("#outside") for tag in meanings(case.danmaku())):
        return Cause("decline")
    if "核实" in facts:
        return Cause("unsupported_claim")
    tool = best_tool(case, view)
    return _tool_cause(case, tool, view) if tool else Cause("other")


def _tool_cause(case: Brief, tool: str, view: HarnessView) -> Cause:
    users = [skill.name for skill in view.skills_naming(tool)]
    loaded = [name for name in case.skills() if name in users]
    if case.called(tool):
        return Cause("statement", (loaded or users or [""])[0])
    if loaded:
        return Cause("step", tool)
    return Cause("description" if users else "new_skill", tool)


def plan_for(cause: Cause, cases: Sequence[Brief], view: HarnessView) -> Plan:
    """What to change for the cases of one cause."""
    if cause.kind in RULES:
        return plan_for_rule(cause.kind, view)
    plans: dict[str, Callable[[], Plan]] = {
        "forbidden_claim": lambda: plan_for_claims(cases, view),
        "script": lambda: _script(cases, view, cause.subject),
        "decline": lambda: _decline(cases, view),
        "statement": lambda: _statement(cases, view, cause.subject),
        "step": lambda: _step(view, cause.subject),
        "description": lambda: _description(cases, view, cause.subject),
        "new_skill": lambda: _new_skill(cases, view, cause.subject),
        "other": lambda: _model_or_knowledge(cases, view),
    }
    return plans[cause.kind]()


def _only_talks(name: str, view: HarnessView) -> bool:
    body = view.harness.skills[name].body
    return "话术" in body and not any(tool in body for tool in view.harness.tools)


def best_tool(case: Brief, view: HarnessView) -> str | None:
    """The tool whose documentation is closest to the danmaku and the missing facts; None when none is close."""
    names = sorted(view.harness.tools)
    index = Index.of(tool_text(view.harness.tools[name]) for name in names)
    scores = index.scores(" ".join([case.danmaku(), *case.texts("missing_fact")]))
    best = max(range(len(names)), key=lambda i: (scores[i], -i), default=None)
    return names[best] if best is not None and scores[best] >= TOOL_FITS else None


def common_tool(cases: Sequence[Brief], view: HarnessView) -> str | None:
    """The tool that most of the cases are about."""
    votes = Counter(tool for case in cases if (tool := best_tool(case, view)))
    return max(sorted(votes), key=lambda name: votes[name], default=None)


def common_claims(cases: Sequence[Brief]) -> list[str]:
    """The claims that the cases made, most frequent first, in the reply's words."""
    found = Counter(
        re.sub(r"[哈啊哦呀。.！! ]+$", "", t) for case in cases for t in case.texts("forbidden_claim")
    )
    return [claim for claim, _ in sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))][:MAX_CLAIMS]


def _statement(cases: Sequence[Brief], view: HarnessView, name: str) -> Plan:
    """The tool was called: the skill does not tell to state the fields that have the missing facts."""
    skill = view.harness.skills.get(name)
    fields = [
        name for name in _fields_with(cases, view) if skill and not re.search(rf"\b{name}\b", skill.body)
    ]
    if skill is None or not fields:
        return _model_or_knowledge(cases, view)
    labels = _all_labels(view)
    listed = "、".join(f"{name}（{labels.get(name, name)}）" for name in fields[:MAX_FIELDS])
    return Plan(
        "skill",
        skill.path,
        f"工具返回了需要的信息，但技能 {skill.name} 的回复要点没有要求说明{listed}，回复里就没有。",
        "如果回复要点写上这些字段之后回复里仍然没有，这个判断就不成立。",
        [
            sentences.amend_skill(skill.path, sentences.STATE, f"说明 {listed}。"),
            *_cautions(skill.path, cases),
        ],
    )


def _step(view: HarnessView, tool: str) -> Plan:
    """The right skill was loaded, but its step was not taken."""
    skill = view.skills_naming(tool)[0]
    return Plan(
        "skill",
        skill.path,
        f"技能 {skill.name} 已经加载，但调用 {tool} 的步骤带着条件，观众的说法没有满足条件，工具没有被调用。",
        f"如果每次都调用 {tool} 之后仍然没有说到这些信息，这个判断就不成立。",
        [sentences.amend_skill(skill.path, sentences.STEPS, f"调用 `{tool}` 查{view.subject(tool)}。")],
        wrong_turn=2,
    )


def _cautions(path: str, cases: Sequence[Brief]) -> list[str]:
    """Cautions for a skill, when several of its cases made false promises too."""
    promising = [case for case in cases if "forbidden_claim" in case.kinds()]
    claims = common_claims(promising) if len(promising) >= 2 else []
    said = "、".join(f"「{claim}」" for claim in claims)
    return [sentences.amend_skill(path, sentences.CAUTION, f"不要对观众说{said}。")] if claims else []


def _description(cases: Sequence[Brief], view: HarnessView, tool: str) -> Plan:
    """A skill names the tool, but viewers' words did not lead to it."""
    skill = view.skills_naming(tool)[0]
    phrases = "".join(
        f"「{phrase}」"
        for phrase in viewers_phrases(
            cases, _descriptions(view, but=skill.name), tool_text(view.harness.tools[tool])
        )
    )
    return Plan(
        "skill",
        skill.path,
        f"技能 {skill.name} 本来能回答，但它的描述里没有观众的说法，模型选了别的技能。",
        f"如果描述写上这些说法之后仍然没有加载 {skill.name}，这个判断就不成立。",
        [sentences.amend_skill(skill.path, sentences.DESCRIPTION, f"观众也会这样问：{phrases}。")],
        wrong_turn=1,
    )


def _new_skill(cases: Sequence[Brief], view: HarnessView, tool: str) -> Plan:
    """No skill names the tool."""
    topic = re.sub(r"^get_|_info$|_policy$", "", tool).replace("_", "-")
    path = free_path(view, "skills/{}/SKILL.md", f"{topic}-qa")
    subject, labels = view.subject(tool), view.labels(tool)
    ranked = _ranked_fields(cases, labels)
    listed = "、".join(f"{name}（{labels[name]}）" for name in ranked)
    topics = "、".join(labels[name] for name in ranked)
    phrases = "".join(
        f"「{phrase}」"
        for phrase in viewers_phrases(cases, _descriptions(view), tool_text(view.harness.tools[tool]))
    )
    description = f"{subject}问答。观众问{_topics_of(view, tool) or topics}时使用{_such_as(phrases)}。"
    return Plan(
        "skill",
        path,
        f"没有技能会调用 {tool}，观众问{subject}时模型只好用别的技能，说不到点上。",
        f"如果已有技能的步骤里就有 {tool}，只是没有被选中，这个判断就不成立。",
        [
            sentences.new_skill(path, description),
            sentences.amend_skill(path, sentences.STEPS, f"调用 `{tool}` 查{subject}。"),
            sentences.amend_skill(path, sentences.STATE, f"说明 {listed}。"),
            *_cautions(path, cases),
        ],
        wrong_turn=1,
    )


def _decline(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """There is a skill to decline with that was not chosen, or none at all."""
    talkers = [name for name in sorted(view.harness.skills) if _only_talks(name, view)]
    decliner = next((name for name in talkers if "以外" in view.harness.skills[name].description), None)
    return _wider(cases, view, decliner) if decliner else _decline_skill(cases, view)


def _decline_skill(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """No tool has it: say so, and lead back to the shelf."""
    path = free_path(view, "skills/{}/SKILL.md", "out-of-scope")
    phrases = "".join(f"「{phrase}」" for phrase in viewers_phrases(cases, _descriptions(view)))
    description = f"直播间以外的问题。观众问和本场商品无关、主播帮不上忙的事时使用{_such_as(phrases)}。"
    lines = [line for fact, asked in _by_fact(cases) if (line := _script_line(fact, asked))]
    return Plan(
        "skill",
        path,
        "没有工具能查到观众问的事，也没有技能说该怎么婉拒，模型硬用别的技能回答。",
        "如果有工具能查到这些信息，这个判断就不成立。",
        [
            sentences.new_skill(path, description),
            sentences.amend_skill(path, sentences.SCRIPT, f"话术：「{DECLINE}。」"),
            *(sentences.amend_skill(path, sentences.SCRIPT, line) for line in lines),
        ],
        wrong_turn=1,
        certainty=0.8,
    )


def _wider(cases: Sequence[Brief], view: HarnessView, name: str) -> Plan:
    """The skill that declines was not chosen."""
    path = view.harness.skills[name].path
    phrases = "".join(f"「{phrase}」" for phrase in viewers_phrases(cases, _descriptions(view, but=name)))
    return Plan(
        "skill",
        path,
        f"没有工具能查到观众问的事，该由技能 {name} 婉拒，但它的描述里没有这些说法。",
        f"如果描述写上这些说法之后仍然没有加载 {name}，这个判断就不成立。",
        [sentences.amend_skill(path, sentences.DESCRIPTION, f"观众也会这样问：{phrases}。")],
        wrong_turn=1,
        certainty=0.7,
    )


def _script(cases: Sequence[Brief], view: HarnessView, name: str) -> Plan:
    """The right skill was loaded, but it has no line for what the viewer said."""
    skill = view.harness.skills[name]
    lines = [line for fact, asked in _by_fact(cases) if (line := _script_line(fact, asked))]
    if not lines:
        return _model_or_knowledge(cases, view)
    return Plan(
        "skill",
        skill.path,
        f"技能 {skill.name} 的话术里没有适合这些弹幕的一句，模型只好说了别的。",
        "如果加上这些话术之后仍然说别的，这个判断就不成立。",
        [sentences.amend_skill(skill.path, sentences.SCRIPT, line) for line in lines],
    )


def _by_fact(cases: Sequence[Brief]) -> list[tuple[str, list[Brief]]]:
    facts = Counter(fact for case in cases for fact in case.texts("missing_fact"))
    ranked = sorted(facts, key=lambda fact: (-facts[fact], fact))
    return [(fact, [case for case in cases if fact in case.texts("missing_fact")]) for fact in ranked]


def _script_line(fact: str, cases: Sequence[Brief]) -> str | None:
    """A line of script with its condition, when the fact is one of manners."""
    line = next((line for word, line in MANNERS.items() if word in fact), None)
    phrases = viewers_phrases(cases)
    return f"话术（{'、'.join(phrases)}）：「{line}」" if line and phrases else None


def _model_or_knowledge(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """The harness asks for it already, or no result has it."""
    known = any(_matching_fields(case) for case in cases)
    path = view.rules_path()
    rule = (
        "先回答观众直接问到的那一项，再补充别的。"
        if known
        else "工具没有返回的信息，说「这个我帮你核实一下」。"
    )
    return Plan(
        "model" if known else "knowledge",
        "",
        "技能已经要求说明这些信息，模型没有照做。"
        if known
        else "工具返回的内容里没有这些信息，知识本身缺了。",
        "如果技能没有要求说明这些信息，这个判断就不成立。",
        [sentences.add_rule(path, rule)],
        certainty=0.6,
    )


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


def _such_as(phrases: str) -> str:
    return f"，例如{phrases}" if phrases else ""


def _descriptions(view: HarnessView, *, but: str = "") -> str:
    """The descriptions of all skills but one, as one text."""
    return " ".join(skill.description for name, skill in sorted(view.harness.skills.items()) if name != but)


def _first_clause(text: str) -> str:
    clauses = [clause.strip() for clause in re.split(r"[，。！？,!?]|\s+(?=[\u4e00-\u9fff])", text)]
    return next((clause for clause in clauses if clause), "")[:MAX_PHRASE]


def _topics_of(view: HarnessView, tool: str) -> str:
    """The list after the colon of the tool's Chinese description: what it answers."""
    known = view.harness.tools[tool].description.split("。")[0]
    return known.partition("：")[2].strip()


def _ranked_fields(cases: Sequence[Brief], labels: dict[str, str]) -> list[str]:
    asked = " ".join(text for case in cases for text in [case.danmaku(), *case.texts("missing_fact")])
    names = [name for name in labels if name != "name"]
    return sorted(names, key=lambda name: not shared(labels[name], asked))[:MAX_FIELDS]


def _fields_with(cases: Sequence[Brief], view: HarnessView) -> list[str]:
    """The result fields that have the missing facts, most frequent first."""
    found = Counter(name for case in cases for name in _matching_fields(case))
    known = _all_labels(view)
    return [
        name for name, _ in sorted(found.items(), key=lambda entry: (-entry[1], entry[0])) if name in known
    ]


def _matching_fields(case: Brief) -> list[str]:
    results = case.results()
    fields = [_closest_field(fact, results) for fact in case.texts("missing_fact")]
    return [name for name in fields if name]


def _closest_field(fact: str, results: dict[str, object]) -> str | None:
    likeness = {
        name: _likeness(fact, values_as_text(value)) for name, value in results.items() if name != "name"
    }
    best = max(sorted(likeness), key=lambda name: likeness[name], default=None)
    return best if best is not None and likeness[best] >= 2 else None


def _likeness(fact: str, value: str) -> float:
    numbers = set(re.findall(r"\d+(?:\.\d+)?", fact)) & set(re.findall(r"\d+(?:\.\d+)?", value))
    return 2 * len(numbers) + len(shared(fact, value))


def _all_labels(view: HarnessView) -> dict[str, str]:
    return {name: label for tool in view.harness.tools for name, label in view.labels(tool).items()}


def _stem(cases: Sequence[Brief], view: HarnessView) -> str:
    tool = common_tool(cases, view)
    if tool:
        return re.sub(r"^get_|_info$|_policy$", "", tool)
    return re.sub(r"[^a-z0-9_]", "", cases[0].category.lower()) if cases and cases[0].category else "claims"


def free_path(view: HarnessView, pattern: str, stem: str) -> str:
    """The pattern filled with the stem, numbered when the harness has such a file already."""
    candidates = [stem, *(f"{stem}-{n}" for n in range(2, 100))]
    return next(path for name in candidates if (path := pattern.format(name)) not in view.files)
