"""The rehearsal editor: carries out the change sentences of a diagnosis, or what a reviewer makes of them."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import yaml

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import HarnessView
from evolution.adapters.rehearsal.phrases import free_path
from evolution.adapters.rehearsal.policy import Turn
from evolution.adapters.rehearsal.rules import NEGATION
from evolution.adapters.rehearsal.sentences import Change
from evolution.adapters.rehearsal.wording import listed, say
from evolution.prompts.fences import read_fenced
from harness_repo.runtime.chat import ChatRequest
from harness_repo.skills import Skill

MAX_DESCRIPTION = 1024
USE_HOOK = re.compile(r"钩子|\bhooks?\b", re.IGNORECASE)
SHORTER = re.compile(r"精简|简短|短一点|太长|缩短|shorter|too long|concise", re.IGNORECASE)
EXAMPLES = re.compile(
    r"[，,]?\s*(?:例如|比如|for example)\s*(?:「[^」]*」|\"[^\"]*\"(?:, )?)+", re.IGNORECASE
)


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
    """A DraftOutput as a dict, in the language of the harness."""
    zh = view.chinese
    told = [str(text) for text in diagnosis.get("changes") or []] or [str(diagnosis.get("hypothesis", ""))]
    changes = [sentences.read_change(text, view.rules_path()) for text in told]
    changes = _heed(feedback, changes, view) if feedback else changes
    evidence = [entry for entry in diagnosis.get("evidence") or [] if isinstance(entry, dict)]
    cases = ("、" if zh else ", ").join(str(entry.get("case", "")) for entry in evidence)
    return {
        "title": _title(changes, chinese=zh),
        "slug": _slug(changes),
        "summary": say(
            "draft.summary",
            chinese=zh,
            hypothesis=str(diagnosis.get("hypothesis", "")),
            changes=("；" if zh else "; ").join(_in_words(change, chinese=zh) for change in changes),
        ),
        "edits": _edits(changes, view),
        "expected_effect": say(
            "draft.effect",
            chinese=zh,
            cluster=str(diagnosis.get("cluster_name", "")),
            cases=cases or say("draft.these", chinese=zh),
        ),
        "risks": list(dict.fromkeys(say(f"risk.{change.what}", chinese=zh) for change in changes)),
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
        return [
            _edit(path, "create", _hook_text(path, sentences.quoted(changes[0].text), chinese=view.chinese))
        ]
    skill = view.skill_at(path)
    if skill is None:
        return [_edit(path, "create", _new_skill_text(path, changes, chinese=view.chinese))]
    return [_edit(path, "replace", _amended(skill, view.files[path], changes, chinese=view.chinese))]


def _rule_edits(path: str, rules: Sequence[str], view: HarnessView) -> list[dict[str, str]]:
    lines = [f"- {rule}" for rule in rules]
    heading = f"## {say('draft.rules_heading', chinese=view.chinese)}"
    if path not in view.files:
        return [_edit(path, "create", "\n".join([heading, *lines]))]
    if not view.rules(path):
        lines[0] = f"\n{heading}\n{lines[0]}"
    return [_edit(path, "append_line", line) for line in lines]


def _hook_text(path: str, claims: Sequence[str], *, chinese: bool) -> str:
    name = path.rsplit("/", 1)[-1].removesuffix(".yaml")
    message = say("claims.rule", chinese=chinese, said=listed(claims, chinese=chinese))
    hook = {
        "name": name,
        "event": "reply",
        "check": {"kind": "forbid", "patterns": [re.escape(claim).replace("\\ ", " ") for claim in claims]},
        "on_fail": {"action": "retry", "message": f"- {message}"},
    }
    return yaml.safe_dump(hook, allow_unicode=True, sort_keys=False, width=1000)


def _new_skill_text(path: str, changes: Sequence[Change], *, chinese: bool) -> str:
    name = path.split("/")[-2]
    default = say("draft.default_description", chinese=chinese, name=name)
    description = next((change.text for change in changes if change.what == "skill"), default)
    parts = [f"# {re.split('[。，.]', description)[0]}"]
    for section in (sentences.STEPS, sentences.STATE, sentences.SCRIPT, sentences.CAUTION):
        lines = [_line(change, chinese=chinese) for change in changes if change.what == section]
        if lines:
            parts.append(f"## {sentences.heading(section, chinese=chinese)}\n" + "\n".join(lines))
    front = {"name": name, "description": description[:MAX_DESCRIPTION], "metadata": {"kind": "reply"}}
    return _front_matter(front) + "\n\n".join(parts) + "\n"


def _amended(skill: Skill, text: str, changes: Sequence[Change], *, chinese: bool) -> str:
    added = [change.text for change in changes if change.what == sentences.DESCRIPTION]
    body = skill.body.strip("\n")
    for change in changes:
        if change.what not in {sentences.DESCRIPTION, "skill"}:
            heading = sentences.heading(change.what, chinese=chinese)
            body = _with_line(body, heading, _line(change, chinese=chinese))
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


def _line(change: Change, *, chinese: bool) -> str:
    if change.what != sentences.SCRIPT or change.text.lower().startswith(("话术", "script")):
        return f"- {change.text}"
    return f"- {say('script.line', chinese=chinese, line=change.text.strip('「」'))}"


def _front_matter(values: dict[str, Any]) -> str:
    dumped = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=10_000)
    return f"---\n{dumped}---\n"


def _front_matter_of(text: str) -> dict[str, Any]:
    match = re.match(r"^---\s*\n(.*?)\n---\s*\n", text, re.DOTALL)
    values = yaml.safe_load(match.group(1)) if match else {}
    return values if isinstance(values, dict) else {}


def _edit(path: str, action: str, content: str) -> dict[str, str]:
    return {"path": path, "action": action, "content": content}


def _title(changes: Sequence[Change], *, chinese: bool) -> str:
    first = changes[0]
    name = first.path.split("/")[-2] if first.path.endswith("SKILL.md") else first.path
    if first.what in {"rule", "hook", "skill"}:
        return say(f"draft.{first.what}", chinese=chinese, name=name)[:120]
    section = sentences.heading(first.what, chinese=chinese)
    return say("draft.amend", chinese=chinese, name=name, section=section)[:120]


def _slug(changes: Sequence[Change]) -> str:
    first = changes[0]
    name = (
        first.path.split("/")[-2]
        if first.path.endswith("SKILL.md")
        else first.path.rsplit("/", 1)[-1].split(".")[0]
    )
    words = {"rule": "rule", "hook": "hook", "skill": "new-skill"}.get(first.what, "amend")
    return re.sub(r"[^a-z0-9]+", "-", f"{words}-{name}".lower()).strip("-")[:40].strip("-")


def _in_words(change: Change, *, chinese: bool) -> str:
    return f"{change.path}（{change.text[:40]}）" if chinese else f"{change.path} ({change.text[:80]})"
