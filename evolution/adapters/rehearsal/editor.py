"""The rehearsal editor: carries out the change sentences of a diagnosis, or what a reviewer makes of them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import HarnessView
from evolution.adapters.rehearsal.line_comments import heed_all
from evolution.adapters.rehearsal.policy import Turn
from evolution.adapters.rehearsal.redraft import change_text, read_draft, replacing
from evolution.adapters.rehearsal.sentences import Change
from evolution.adapters.rehearsal.text import clip
from evolution.adapters.rehearsal.wording import listed, say
from evolution.prompts.fences import read_fenced
from evolution.prompts.file_edits import FileEdit, apply_edits
from harness_repo.format.skills import Skill
from harness_repo.runtime.chat import ChatRequest

MAX_DESCRIPTION = 1024
MAX_TITLE = 120
# Of a reviewer's words, where they are told back.
LONGEST_SAID = 200
MOST_SAID = 10
FRONT_MATTER = re.compile(r"^---\s*\n(.*?)\n---\s*\n", re.DOTALL)


def answer_as_editor(request: ChatRequest) -> Turn:
    """The draft of an edit for the diagnosis that the prompt shows, as JSON."""
    blocks = read_fenced("\n\n".join(str(message.get("content") or "") for message in request.messages))
    diagnosis = blocks.get("diagnosis")
    output = draft(
        diagnosis if isinstance(diagnosis, dict) else {},
        Drafting.of(blocks.get("files"), blocks.get("original")),
        str(blocks.get("feedback") or ""),
    )
    return Turn(json.dumps(output, ensure_ascii=False))


@dataclass(frozen=True)
class Drafting:
    """The harness without the draft, and with it; the same for a first draft. `touched` are the draft's files."""

    base: HarnessView
    now: HarnessView
    touched: tuple[str, ...] = ()

    @classmethod
    def of(cls, files: Any, original: Any = None) -> "Drafting":
        """Read the blocks of the prompt."""
        now = HarnessView.of(files)
        before = original if isinstance(original, dict) else {}
        base = {**now.files, **before}
        return cls(
            HarnessView.of({path: text for path, text in base.items() if text is not None}),
            now,
            tuple(before),
        )

    def changes(self, told: Sequence[Change]) -> list[Change]:
        """What is drafted: as told at first, then what the files say, those of the first path told first."""
        if not self.touched:
            return list(told)
        order = list(dict.fromkeys(change.path for change in told))
        paths = sorted(self.touched, key=lambda path: order.index(path) if path in order else len(order))
        return read_draft(self.base, self.now, paths)

    def edits(self, changes: Sequence[Change], drafted: Sequence[Change]) -> list[dict[str, Any]]:
        """The edits that carry the changes out, in place of what was `drafted`."""
        edits = _edits(changes, self.base)
        if not self.touched:
            return edits
        wanted = {**self.base.files, **_applied(edits, self.base)}
        dropped = {change.path for change in drafted} - {change.path for change in changes}
        before = {**self.base.files, **_applied(_edits(drafted, self.base), self.base)}
        # What people have put there by hand, in forms that are not known here, is left to them.
        others = [p for p in self.touched if before.get(p) != self.now.files.get(p) and p not in dropped]
        paths = [*(change.path for change in changes), *self.touched]
        return replacing(wanted, self.now.files, [path for path in paths if path not in others])


def draft(diagnosis: dict[str, Any], drafting: Drafting, feedback: str = "") -> dict[str, Any]:
    """A DraftOutput as a dict, in the language of the harness; without edits when there is nothing to change."""
    view, zh = drafting.base, drafting.base.chinese
    told = [
        sentences.read_change(str(text), view.rules_path()) for text in diagnosis.get("changes") or [] if text
    ]
    drafted = drafting.changes(told)
    changes, unheeded = drafted, list[str]()
    if feedback:
        changes, unheeded = heed_all(feedback, view, str(diagnosis.get("path") or ""), drafted)
    # Better nothing than a reviewer's remark as a rule of the agent.
    is_refused = bool(unheeded) and changes == drafted
    evidence = [entry for entry in diagnosis.get("evidence") or [] if isinstance(entry, dict)]
    cases = ("、" if zh else ", ").join(str(entry.get("case", "")) for entry in evidence)
    return {
        "title": _title(changes, chinese=zh),
        "slug": _slug(changes),
        "summary": _tell_unheeded(unheeded, chinese=zh)
        if is_refused
        else _summary(str(diagnosis.get("hypothesis", "")), changes, unheeded, chinese=zh),
        "edits": [] if is_refused else drafting.edits(changes, drafted),
        "expected_effect": say(
            "draft.effect",
            chinese=zh,
            cluster=str(diagnosis.get("cluster_name", "")),
            cases=cases or say("draft.these", chinese=zh),
        ),
        "risks": list(dict.fromkeys(say(f"risk.{change.what}", chinese=zh) for change in changes)),
    }


def _summary(hypothesis: str, changes: Sequence[Change], unheeded: Sequence[str], *, chinese: bool) -> str:
    left = [_tell_unheeded(unheeded, chinese=chinese)] if unheeded else []
    if not changes:
        return " ".join([say("draft.nothing_because", chinese=chinese, hypothesis=hypothesis), *left])
    told = ("；" if chinese else "; ").join(_in_words(change, chinese=chinese) for change in changes)
    return " ".join([say("draft.summary", chinese=chinese, hypothesis=hypothesis, changes=told), *left])


def _tell_unheeded(words: Sequence[str], *, chinese: bool) -> str:
    known = say("draft.known", chinese=chinese)
    said = ("；" if chinese else "; ").join(clip(each, LONGEST_SAID) for each in words[:MOST_SAID])
    return say("draft.not_understood", chinese=chinese, said=said, known=known)


def _applied(edits: Sequence[dict[str, Any]], view: HarnessView) -> dict[str, str]:
    """Path -> new text, of edits of the editor's own."""
    files = {path: text.encode() for path, text in view.files.items()}
    changed = apply_edits(files, [FileEdit.model_validate(edit) for edit in edits])
    return {path: data.decode() for path, data in changed.items() if data is not None}


def _edits(changes: Sequence[Change], view: HarnessView) -> list[dict[str, Any]]:
    edits: list[dict[str, Any]] = []
    for path in dict.fromkeys(change.path for change in changes):
        mine = [change for change in changes if change.path == path]
        edits += _edits_of(path, mine, view)
    return edits


def _edits_of(path: str, changes: Sequence[Change], view: HarnessView) -> list[dict[str, Any]]:
    if changes[0].what == "rule":
        return _rule_edits(path, [change.text for change in changes], view)
    if changes[0].what == "hook":
        return [
            _edit(path, "create", _hook_text(path, sentences.quoted(changes[0].text), chinese=view.chinese))
        ]
    skill = view.skill_at(path)
    if skill is None:
        return [_edit(path, "create", _new_skill_text(path, changes, chinese=view.chinese))]
    text = view.files[path]
    return [change_text(path, text, _amended(skill, text, changes, chinese=view.chinese))]


def _rule_edits(path: str, rules: Sequence[str], view: HarnessView) -> list[dict[str, Any]]:
    # Another proposal may have brought the same one.
    lines = [f"- {rule}" for rule in rules if rule not in view.rules(path)]
    if not lines:
        return []
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
    written = FRONT_MATTER.match(text)
    if written and not added:
        return written.group() + body + "\n"
    front = {
        "name": skill.name,
        "description": " ".join([skill.description.strip(), *added])[:MAX_DESCRIPTION],
        "metadata": {"kind": skill.kind},
    }
    return _front_matter({**_front_matter_of(text), **front}) + body + "\n"


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
    match = FRONT_MATTER.match(text)
    values = yaml.safe_load(match.group(1)) if match else {}
    return values if isinstance(values, dict) else {}


def _edit(path: str, action: str, content: str) -> dict[str, Any]:
    return {"path": path, "action": action, "content": content}


def _title(changes: Sequence[Change], *, chinese: bool) -> str:
    if not changes:
        return say("draft.nothing", chinese=chinese)
    first = changes[0]
    name = first.path.split("/")[-2] if first.path.endswith("SKILL.md") else first.path
    if first.what == "rule":
        # Of many proposals that add rules to one file, each says which.
        added = say("draft.rule", chinese=chinese, name=name)
        return clip(f"{added}{'：' if chinese else ': '}{first.text}", MAX_TITLE - 1)
    if first.what in {"hook", "skill"}:
        return say(f"draft.{first.what}", chinese=chinese, name=name)[:MAX_TITLE]
    section = sentences.heading(first.what, chinese=chinese)
    return say("draft.amend", chinese=chinese, name=name, section=section)[:MAX_TITLE]


def _slug(changes: Sequence[Change]) -> str:
    if not changes:
        return "nothing"
    first = changes[0]
    name = (
        first.path.split("/")[-2]
        if first.path.endswith("SKILL.md")
        else first.path.rsplit("/", 1)[-1].split(".")[0]
    )
    words = {"rule": "rule", "hook": "hook", "skill": "new-skill"}.get(first.what, "amend")
    return re.sub(r"[^a-z0-9]+", "-", f"{words}-{name}".lower()).strip("-")[:40].strip("-")


def _in_words(change: Change, *, chinese: bool) -> str:
    text = clip(change.text, 40 if chinese else 80)
    return f"{change.path}（{text}）" if chinese else f"{change.path} ({text})"
