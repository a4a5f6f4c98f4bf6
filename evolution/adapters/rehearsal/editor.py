"""The rehearsal editor: carries out the change sentences of a diagnosis, or what a reviewer makes of them."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import yaml

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.blame import free_path
from evolution.adapters.rehearsal.briefs import HarnessView
from evolution.adapters.rehearsal.policy import Turn
from evolution.adapters.rehearsal.rules import NEGATION
from evolution.adapters.rehearsal.sentences import Change
from evolution.prompts.fences import read_fenced
from harness_repo.runtime.chat import ChatRequest
from harness_repo.skills import Skill

MAX_DESCRIPTION = 1024
USE_HOOK = re.compile(r"钩子|\bhooks?\b", re.IGNORECASE)
SHORTER = re.compile(r"精简|简短|短一点|太长|缩短|shorter|too long|concise", re.IGNORECASE)
EXAMPLES = re.compile(r"[，,]?\s*(?:例如|比如)(?:「[^」]*」)+")

RISKS = {
    "rule": "约束又长了一条，排在前面的旧规则可能被忽略。",
    "hook": "正则可能拦下正常的回复，重说会增加延迟。",
    "skill": "新技能的描述可能把别的问题也吸引过来。",
    sentences.DESCRIPTION: "描述变宽之后可能抢走别的技能的问题。",
    sentences.STATE: "回复变长，可能超过字数限制。",
    sentences.STEPS: "每次多一次工具调用，延迟会上升。",
    sentences.CAUTION: "技能正文变长，会占用模型的注意力。",
    sentences.SCRIPT: "话术固定，遇到细分的问题会显得生硬。",
}


def answer_as_editor(request: ChatRequest) -> Turn:
    """The draft of an edit for the diagnosis that the prompt shows, as JSON."""
    blocks = read_fenced("\n\n".join(str(message.get("content") or "") for message in request.messages))
    diagnosis = blocks.get("diagnosis")
    view = HarnessView.of(blocks.get("files"))
    feedback = str(blocks.get("feedback") or "")
    return Turn(
        json.dumps(
            draft(diagnosis if isinstance(diagnosis, dict) else {}, view, feedback), ensure_ascii=False
        )
    )


def draft(diagnosis: dict[str, Any], view: HarnessView, feedback: str = "") -> dict[str, Any]:
    """A DraftOutput as a dict."""
    told = [str(text) for text in diagnosis.get("changes") or []] or [str(diagnosis.get("hypothesis", ""))]
    changes = [sentences.read_change(text, view.rules_path()) for text in told]
    changes = _heed(feedback, changes, view) if feedback else changes
    edits = _edits(changes, view)
    cases = [
        str(entry.get("case", "")) for entry in diagnosis.get("evidence") or [] if isinstance(entry, dict)
    ]
    return {
        "title": _title(changes),
        "slug": _slug(changes),
        "summary": f"{diagnosis.get('hypothesis', '')} 改动：{'；'.join(_in_words(change) for change in changes)}",
        "edits": edits,
        "expected_effect": f"「{diagnosis.get('cluster_name', '')}」应当修好，先看 {'、'.join(cases) or '这一类'}。",
        "risks": list(dict.fromkeys(RISKS[change.what] for change in changes)),
    }


def _heed(feedback: str, changes: Sequence[Change], view: HarnessView) -> list[Change]:
    """The changes as the reviewer wants them."""
    wanted = list(changes)
    phrases = sentences.quoted(feedback)
    if phrases:
        wanted = _with_words(wanted, phrases)
    if USE_HOOK.search(feedback):
        wanted = _as_hook(wanted, view)
    if SHORTER.search(feedback):
        wanted = [_shorter(change) for change in wanted[:1] if change.what == "rule"] or list(
            map(_shorter, wanted)
        )
    if wanted == list(changes):
        wanted = [*wanted, Change("rule", view.rules_path(), " ".join(feedback.split())[:120])]
    return wanted


def _with_words(changes: Sequence[Change], phrases: Sequence[str]) -> list[Change]:
    """The reviewer's phrases: instead of drafted rules, in a hook as patterns, in a skill as lines of their own."""
    rules = [change for change in changes if change.what == "rule"]
    if rules:
        kept = [change for change in changes if change.what != "rule"]
        return [*kept, *(Change("rule", rules[0].path, phrase) for phrase in phrases)]
    if changes[0].what == "hook":
        return [replace(changes[0], text="".join(f"「{phrase}」" for phrase in phrases))]
    extra = [
        Change(sentences.CAUTION if NEGATION.search(phrase) else sentences.STATE, changes[0].path, phrase)
        for phrase in phrases
    ]
    return [*changes, *extra]


def _as_hook(changes: Sequence[Change], view: HarnessView) -> list[Change]:
    """One hook with the claims that the rules and cautions quote, in their place."""
    turned = [change for change in changes if change.what in {"rule", "hook", sentences.CAUTION}]
    claims = [claim for change in turned for claim in sentences.quoted(change.text) or [_bare(change.text)]]
    kept = [change for change in changes if change not in turned]
    path = free_path(view, "hooks/forbid_{}.yaml", "claims")
    return (
        [*kept, Change("hook", path, "".join(f"「{claim}」" for claim in claims))]
        if claims
        else list(changes)
    )


def _bare(rule: str) -> str:
    return re.sub(r"^(?:不要|不得|禁止|不许|不能)(?:对观众)?说?", "", rule).strip("。. ")


def _shorter(change: Change) -> Change:
    text = EXAMPLES.sub("", change.text)
    return replace(
        change, text=text if text != change.text else re.split(r"(?<=[，,。；;])", text)[0].rstrip("，,；;")
    )


def _edits(changes: Sequence[Change], view: HarnessView) -> list[dict[str, str]]:
    edits: list[dict[str, str]] = []
    for path in dict.fromkeys(change.path for change in changes):
        mine = [change for change in changes if change.path == path]
        edits += _edits_of(path, mine, view)
    return edits


def _edits_of(path: str, changes: Sequence[Change], view: HarnessView) -> list[dict[str, str]]:
    if changes[0].what == "rule":
        return _rule_edits(path, [change.text for change in changes], view)
    if changes[0].what == "hook":
        return [_edit(path, "create", _hook_text(path, sentences.quoted(changes[0].text)))]
    skill = view.skill_at(path)
    if skill is None:
        return [_edit(path, "create", _new_skill_text(path, changes))]
    return [_edit(path, "replace", _amended(skill, view.files[path], changes))]


def _rule_edits(path: str, rules: Sequence[str], view: HarnessView) -> list[dict[str, str]]:
    lines = [f"- {rule}" for rule in rules]
    if path not in view.files:
        return [_edit(path, "create", "\n".join(["## 约束", *lines]))]
    return [_edit(path, "append_line", line) for line in lines]


def _hook_text(path: str, claims: Sequence[str]) -> str:
    name = path.rsplit("/", 1)[-1].removesuffix(".yaml")
    said = "、".join(f"「{claim}」" for claim in claims)
    hook = {
        "name": name,
        "event": "reply",
        "check": {"kind": "forbid", "patterns": [re.escape(claim).replace("\\ ", " ") for claim in claims]},
        "on_fail": {"action": "retry", "message": f"- 不要对观众说{said}。"},
    }
    return yaml.safe_dump(hook, allow_unicode=True, sort_keys=False, width=1000)


def _new_skill_text(path: str, changes: Sequence[Change]) -> str:
    name = path.split("/")[-2]
    description = next(
        (change.text for change in changes if change.what == "skill"), f"{name} 相关问题时使用。"
    )
    title = re.split(r"[。，]", description)[0]
    parts = [f"# {title}"]
    for section in (sentences.STEPS, sentences.STATE, sentences.SCRIPT, sentences.CAUTION):
        lines = [_line(change) for change in changes if change.what == section]
        if lines:
            parts.append(f"## {section}\n" + "\n".join(lines))
    front = {"name": name, "description": description[:MAX_DESCRIPTION], "metadata": {"kind": "reply"}}
    return _front_matter(front) + "\n\n".join(parts) + "\n"


def _amended(skill: Skill, text: str, changes: Sequence[Change]) -> str:
    added = [change.text for change in changes if change.what == sentences.DESCRIPTION]
    body = skill.body.strip("\n")
    for change in changes:
        if change.what not in {sentences.DESCRIPTION, "skill"}:
            body = _with_line(body, change.what, _line(change))
    front = {
        "name": skill.name,
        "description": " ".join([skill.description.strip(), *added])[:MAX_DESCRIPTION],
        "metadata": {"kind": skill.kind},
    }
    kept = _front_matter_of(text)
    return _front_matter({**kept, **front}) + body + "\n"


def _with_line(body: str, section: str, line: str) -> str:
    """The body with a line more at the end of the section, which is made when it is missing."""
    lines = body.split("\n")
    start = next(
        (i for i, text in enumerate(lines) if re.match(rf"^#+\s*{re.escape(section)}\s*$", text)), None
    )
    if start is None:
        return f"{body}\n\n## {section}\n{line}"
    end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith("#")), len(lines))
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return "\n".join([*lines[:end], line, *lines[end:]])


def _line(change: Change) -> str:
    if change.what == sentences.SCRIPT and not change.text.startswith("话术"):
        return f"- 话术：「{change.text.strip('「」')}」"
    return f"- {change.text}"


def _front_matter(values: dict[str, Any]) -> str:
    dumped = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=10_000)
    return f"---\n{dumped}---\n"


def _front_matter_of(text: str) -> dict[str, Any]:
    match = re.match(r"^---\s*\n(.*?)\n---\s*\n", text, re.DOTALL)
    values = yaml.safe_load(match.group(1)) if match else {}
    return values if isinstance(values, dict) else {}


def _edit(path: str, action: str, content: str) -> dict[str, str]:
    return {"path": path, "action": action, "content": content}


def _title(changes: Sequence[Change]) -> str:
    first = changes[0]
    name = first.path.split("/")[-2] if first.path.endswith("SKILL.md") else first.path
    verbs = {"rule": f"在 {name} 增加规则", "hook": f"新增钩子 {name}", "skill": f"新增技能 {name}"}
    return verbs.get(first.what, f"修改技能 {name} 的{first.what}")[:120]


def _slug(changes: Sequence[Change]) -> str:
    first = changes[0]
    name = (
        first.path.split("/")[-2]
        if first.path.endswith("SKILL.md")
        else first.path.rsplit("/", 1)[-1].split(".")[0]
    )
    words = {"rule": "rule", "hook": "hook", "skill": "new-skill"}.get(first.what, "amend")
    return re.sub(r"[^a-z0-9]+", "-", f"{words}-{name}".lower()).strip("-")[:40].strip("-")


def _in_words(change: Change) -> str:
    return f"{change.path}（{change.text[:40]}）"
