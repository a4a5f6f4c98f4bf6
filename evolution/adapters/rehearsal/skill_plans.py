"""Plans that change skills: what to state, which tool to call, what to be chosen for, what to say."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import Brief, HarnessView, tool_text
from evolution.adapters.rehearsal.causes import MANNERS, RULES, Cause, only_talks
from evolution.adapters.rehearsal.phrases import (
    MAX_FIELDS,
    all_labels,
    common_claims,
    descriptions,
    fields_with,
    free_path,
    ranked_fields,
    tool_stem,
    topics_of,
    viewers_phrases,
)
from evolution.adapters.rehearsal.plans import (
    Plan,
    plan_for_claims,
    plan_for_rule,
    plan_for_the_judge,
    plan_for_the_rest,
)
from evolution.adapters.rehearsal.wording import listed, say


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
        "judge_error": lambda: plan_for_the_judge("judge_error", cases, view),
        "bad_label": lambda: plan_for_the_judge("bad_label", cases, view),
        "other": lambda: plan_for_the_rest(cases, view),
    }
    return plans[cause.kind]()


def _statement(cases: Sequence[Brief], view: HarnessView, name: str) -> Plan:
    """The tool was called: the skill does not tell to state the fields that have the missing facts."""
    zh, skill = view.chinese, view.harness.skills.get(name)
    fields = [field for field in fields_with(cases, view) if skill and not _names(skill.body, field)]
    if skill is None or not fields:
        return plan_for_the_rest(cases, view)
    labelled = _labelled(fields[:MAX_FIELDS], all_labels(view), chinese=zh)
    state = say("state", chinese=zh, fields=labelled)
    return Plan(
        "skill",
        skill.path,
        say("statement.hypothesis", chinese=zh, skill=skill.name, fields=labelled),
        say("statement.refuted", chinese=zh),
        [
            sentences.amend_skill(skill.path, sentences.STATE, state, chinese=zh),
            *_cautions(skill.path, cases, view),
        ],
    )


def _step(view: HarnessView, tool: str) -> Plan:
    """The right skill was loaded, but its step was not taken."""
    zh, skill = view.chinese, view.skills_naming(tool)[0]
    call = say("call", chinese=zh, tool=tool, subject=view.subject(tool))
    return Plan(
        "skill",
        skill.path,
        say("step.hypothesis", chinese=zh, skill=skill.name, tool=tool),
        say("step.refuted", chinese=zh, tool=tool),
        [sentences.amend_skill(skill.path, sentences.STEPS, call, chinese=zh)],
        wrong_turn=2,
    )


def _description(cases: Sequence[Brief], view: HarnessView, tool: str) -> Plan:
    """A skill names the tool, but viewers' words did not lead to it."""
    skill = view.skills_naming(tool)[0]
    phrases = viewers_phrases(cases, descriptions(view, but=skill.name), tool_text(view.harness.tools[tool]))
    return _wider(skill.path, skill.name, phrases, "description", view)


def _wider(path: str, name: str, phrases: Sequence[str], kind: str, view: HarnessView) -> Plan:
    zh = view.chinese
    text = say("description.text", chinese=zh, phrases=_joined(phrases, view))
    return Plan(
        "skill",
        path,
        say(f"{kind}.hypothesis", chinese=zh, skill=name),
        say("description.refuted", chinese=zh, skill=name),
        [sentences.amend_skill(path, sentences.DESCRIPTION, text, chinese=zh)] if phrases else [],
        wrong_turn=1,
    )


def _new_skill(cases: Sequence[Brief], view: HarnessView, tool: str) -> Plan:
    """No skill names the tool."""
    zh, subject, labels = view.chinese, view.subject(tool), view.labels(tool)
    path = free_path(view, "skills/{}/SKILL.md", f"{tool_stem(tool).replace('_', '-')}-qa")
    fields = ranked_fields(cases, labels)
    topics = topics_of(view, tool) or ("、" if zh else ", ").join(labels[name] for name in fields)
    phrases = viewers_phrases(cases, descriptions(view), tool_text(view.harness.tools[tool]))
    description = say(
        "new_skill.description", chinese=zh, subject=subject, topics=topics, examples=_examples(phrases, view)
    )
    call = say("call", chinese=zh, tool=tool, subject=subject)
    state = say("state", chinese=zh, fields=_labelled(fields, labels, chinese=zh))
    return Plan(
        "skill",
        path,
        say("new_skill.hypothesis", chinese=zh, tool=tool, subject=subject),
        say("new_skill.refuted", chinese=zh, tool=tool),
        [
            sentences.new_skill(path, description, chinese=zh),
            sentences.amend_skill(path, sentences.STEPS, call, chinese=zh),
            sentences.amend_skill(path, sentences.STATE, state, chinese=zh),
            *_cautions(path, cases, view),
        ],
        wrong_turn=1,
    )


def _decline(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """There is a skill to decline with that was not chosen, or that has no fitting line; or none at all."""
    declines = ("以外", "out of scope")
    talkers = [name for name in sorted(view.harness.skills) if only_talks(name, view)]
    name = next((n for n in talkers if any(d in view.harness.skills[n].description for d in declines)), None)
    if name is None:
        return _decline_skill(cases, view)
    skill = view.harness.skills[name]
    missed = [case for case in cases if name not in case.skills()]
    plan = _wider(skill.path, name, viewers_phrases(missed, descriptions(view, but=name)), "wider", view)
    lines = _script_lines(skill.path, [case for case in cases if name in case.skills()], view)
    if not plan.changes and not lines:
        return plan_for_the_rest(cases, view)
    return Plan("skill", skill.path, plan.hypothesis, plan.refuted_by, [*plan.changes, *lines], 1, 0.7)


def _decline_skill(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """No tool has it: say so, and lead back to the shelf."""
    zh = view.chinese
    path = free_path(view, "skills/{}/SKILL.md", "out-of-scope")
    phrases = viewers_phrases(cases, descriptions(view))
    description = say("decline.description", chinese=zh, examples=_examples(phrases, view))
    line = say("script.line", chinese=zh, line=say("decline.line", chinese=zh))
    return Plan(
        "skill",
        path,
        say("decline.hypothesis", chinese=zh),
        say("decline.refuted", chinese=zh),
        [
            sentences.new_skill(path, description, chinese=zh),
            sentences.amend_skill(path, sentences.SCRIPT, line, chinese=zh),
            *_script_lines(path, cases, view),
        ],
        wrong_turn=1,
        certainty=0.8,
    )


def _script(cases: Sequence[Brief], view: HarnessView, name: str) -> Plan:
    """A skill that only talks has no line for what the viewer said, or was not chosen for it."""
    zh, skill = view.chinese, view.harness.skills[name]
    missed = [case for case in cases if name not in case.skills()]
    wider = _wider(
        skill.path, name, viewers_phrases(missed, descriptions(view, but=name)), "description", view
    )
    changes = [*_script_lines(skill.path, cases, view), *wider.changes]
    if not changes:
        return plan_for_the_rest(cases, view)
    return Plan(
        "skill",
        skill.path,
        say("script.hypothesis", chinese=zh, skill=skill.name),
        say("script.refuted", chinese=zh),
        changes,
    )


def _script_lines(path: str, cases: Sequence[Brief], view: HarnessView) -> list[str]:
    """A line of script for each missing fact of manners, for what its viewers said."""
    facts = Counter(fact for case in cases for fact in case.texts("missing_fact"))
    found = []
    for fact in sorted(facts, key=lambda fact: (-facts[fact], fact)):
        line = next((line for word, line in MANNERS.items() if word in fact), None)
        phrases = viewers_phrases([case for case in cases if fact in case.texts("missing_fact")])
        if line and phrases:
            spoken = say("script.for", chinese=view.chinese, phrases="、".join(phrases), line=line)
            found.append(sentences.amend_skill(path, sentences.SCRIPT, spoken, chinese=view.chinese))
    return list(dict.fromkeys(found))


def _cautions(path: str, cases: Sequence[Brief], view: HarnessView) -> list[str]:
    """Cautions for a skill, when several of its cases made false promises too."""
    promising = [case for case in cases if case.promises()]
    claims = common_claims(promising) if len(promising) >= 2 else []
    rule = say("claims.rule", chinese=view.chinese, said=listed(claims, chinese=view.chinese))
    return [sentences.amend_skill(path, sentences.CAUTION, rule, chinese=view.chinese)] if claims else []


def _names(body: str, field: str) -> bool:
    return re.search(rf"\b{re.escape(field)}\b", body) is not None


def _labelled(fields: Sequence[str], labels: dict[str, str], *, chinese: bool) -> str:
    named = [(name, labels.get(name, name)) for name in fields]
    if chinese:
        return "、".join(f"{name}（{label}）" for name, label in named)
    return ", ".join(f"{name} ({label})" for name, label in named)


def _joined(phrases: Sequence[str], view: HarnessView) -> str:
    """Viewers' words, each in quotation marks."""
    return "".join(f"「{phrase}」" for phrase in phrases) if view.chinese else listed(phrases, chinese=False)


def _examples(phrases: Sequence[str], view: HarnessView) -> str:
    return say("examples", chinese=view.chinese, phrases=_joined(phrases, view)) if phrases else ""
