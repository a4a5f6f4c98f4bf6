"""What the diagnoser and the editor see: the cases and the harness files of their prompt's fenced blocks."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evolution.adapters.rehearsal.reading import RULES, items, sections
from evolution.adapters.rehearsal.text import NUMBER, is_chinese
from harness_repo.format.harness import Harness, read_harness
from harness_repo.format.skills import Skill
from harness_repo.format.tools import Tool

DEFAULT_RULES = "prompts/constraints.md"


@dataclass(frozen=True)
class Brief:
    """One failure case as shown; what is not shown is empty."""

    id: str
    category: str = ""
    request: Any = None
    trajectory: Mapping[str, Any] = field(default_factory=dict)
    reply: str = ""
    symptom: str = ""
    findings: tuple[tuple[str, str], ...] = ()

    def kinds(self) -> set[str]:
        """The kinds of the judge's findings."""
        return {kind for kind, _ in self.findings}

    def texts(self, *kinds: str) -> list[str]:
        """The texts of the findings of these kinds, in order."""
        return [text for kind, text in self.findings if kind in kinds]

    def promises(self) -> list[str]:
        """What the reply must not promise: forbidden claims, and unsupported ones that are no matter of a number."""
        unsupported = [text for text in self.texts("unsupported_claim") if not NUMBER.search(text)]
        return list(dict.fromkeys([*self.texts("forbidden_claim"), *unsupported]))

    def said(self) -> list[str]:
        """What the users said, one text per danmaku or message; the raw request when it is a text."""
        if isinstance(self.request, str):
            return [self.request]
        parts = self.request if isinstance(self.request, dict) else {}
        danmaku, messages = parts.get("danmaku"), parts.get("messages")
        if isinstance(danmaku, list):
            return [str(entry.get("text", "")) for entry in danmaku if isinstance(entry, dict)]
        users = [entry for entry in messages or [] if isinstance(entry, dict) and entry.get("role") == "user"]
        return [str(entry.get("content") or "") for entry in users]

    def danmaku(self) -> str:
        """What the viewers said, as one text."""
        return " ".join(self.said())

    def calls(self) -> list[Mapping[str, Any]]:
        """The tool calls of the trajectory."""
        return [call for call in self.trajectory.get("tool_calls") or [] if isinstance(call, dict)]

    def called(self, tool: str) -> bool:
        """Whether the tool was called."""
        return any(call.get("name") == tool for call in self.calls())

    def results(self) -> dict[str, Any]:
        """All result fields that the tools returned."""
        found: dict[str, Any] = {}
        for call in self.calls():
            result = call.get("result")
            if isinstance(result, dict) and call.get("name") != "load_skill":
                found = {**result, **found}
        return found

    def skills(self) -> list[str]:
        """The skills loaded, in order."""
        return [str(name) for name in self.trajectory.get("skills_loaded") or []]

    def last_turn(self) -> int:
        """The turn of the reply; 1 when the trajectory does not say."""
        calls = [*(self.trajectory.get("calls") or []), *self.calls()]
        return max((int(call.get("turn") or 0) for call in calls), default=1)


@dataclass(frozen=True)
class HarnessView:
    """The harness files as shown."""

    files: Mapping[str, str]
    harness: Harness

    @classmethod
    def of(cls, block: Any) -> "HarnessView":
        """Read the files block; anything that is no text is left out."""
        files = {str(path): text for path, text in (block or {}).items() if isinstance(text, str)}
        return cls(files, read_harness({path: text.encode() for path, text in files.items()}))

    @cached_property
    def chinese(self) -> bool:
        """Whether the harness speaks Chinese: most of its prompt sections and skill descriptions do."""
        texts = [text for path, text in sorted(self.files.items()) if path.startswith("prompts/")]
        texts += [skill.description for skill in self.harness.skills.values()]
        return not texts or is_chinese("\n".join(texts))

    def rules_path(self) -> str:
        """The prompt file that lists the rules: the one with most of them, else the longest system section."""
        system = [section.path for section in self.harness.prompt if section.role == "system"]
        paths = system or sorted(path for path in self.files if path.startswith("prompts/"))
        counts = {path: len(self.rules(path)) for path in paths}
        best = max(paths, key=lambda path: (counts[path], len(self.files.get(path, ""))), default=None)
        return best or DEFAULT_RULES

    def rules(self, path: str) -> list[str]:
        """The rule items of a prompt file."""
        return [
            i
            for head, lines in sections(self.files.get(path, ""))
            if RULES.search(head)
            for i in items(lines)
        ]

    def skill_at(self, path: str) -> Skill | None:
        """The skill of a SKILL.md path."""
        return next((skill for skill in self.harness.skills.values() if skill.path == path), None)

    def skills_naming(self, tool: str) -> list[Skill]:
        """Skills whose body names the tool, reply skills first."""
        found = [
            skill
            for skill in self.harness.skills.values()
            if re.search(rf"\b{re.escape(tool)}\b", skill.body)
        ]
        return sorted(found, key=lambda skill: (skill.kind != "reply", skill.name))

    def subject(self, tool: str) -> str:
        """What the tool is about, from its documentation: 查询一个链接的售后政策：… -> 售后政策."""
        known = self.harness.tools.get(tool)
        if known is None:
            return tool
        if not self.chinese:
            return re.sub(r"^get_|_info$|_policy$", "", tool).replace("_", " ")
        head = re.split(r"[：:。.\n]", known.description, maxsplit=1)[0]
        return re.sub(r"^(?:查询|搜索|在)?(?:一个链接的|本场直播的)?", "", head).strip()[:16] or tool

    def labels(self, tool: str) -> dict[str, str]:
        """Result field of the tool -> its label in the language of the harness."""
        known = self.harness.tools.get(tool)
        returns = known.returns if known else {}
        return {name: short_label(label, chinese=self.chinese) for name, label in returns.items()}


def short_label(label: str, *, chinese: bool) -> str:
    """The label in one of its two languages, without its unit."""
    zh, _, en = label.partition(" / ")
    return re.split(r"，单位|, in ", zh if chinese or not en else en, maxsplit=1)[0].strip()


def tool_text(tool: Tool) -> str:
    """All that documents a tool, as one text to compare with."""
    parameters = json.dumps(tool.parameters, ensure_ascii=False)
    return " ".join([tool.name.replace("_", " "), tool.description, *tool.returns.values(), parameters])


def read_briefs(block: Any) -> list[Brief]:
    """The cases of the block; entries that are no objects are left out."""
    return [_brief(entry) for entry in block or [] if isinstance(entry, dict)]


def _brief(entry: Mapping[str, Any]) -> Brief:
    trajectory = entry.get("trajectory")
    findings = [f for f in entry.get("findings") or [] if isinstance(f, dict)]
    return Brief(
        id=str(entry.get("id", "")),
        category=str(entry.get("category", "")),
        request=entry.get("request"),
        trajectory=trajectory if isinstance(trajectory, dict) else {},
        reply=str(entry.get("reply", "")),
        symptom=str(entry.get("symptom", "")),
        findings=tuple((str(f.get("kind", "")), str(f.get("text", ""))) for f in findings),
    )


def values_as_text(value: Any) -> str:
    """A result value as one text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def texts_of(cases: Sequence[Brief]) -> list[str]:
    """Danmaku of the cases, links and numbers of links taken out."""
    return [
        re.sub(r"\d+\s*号(?:链接)?|链接\s*\d+|\blinks?\s*#?\d+", "", case.danmaku()).strip() for case in cases
    ]
