"""Prompt sections of a harness (prompts/*.md): Jinja2 templates, in the order of harness.yaml."""

from dataclasses import dataclass
from typing import Literal

from harness_repo.format.problems import Problem, error, warning
from harness_repo.format.templates import TemplateUnusable, variables_of
from harness_repo.format.textfile import read_text

Role = Literal["system", "user"]

# What the runtime hands to an agent's sections, and the loop to a judge's.
AGENT_VARIABLES = frozenset({"request", "danmaku", "room", "products", "faq", "history", "skills"})
JUDGE_VARIABLES = frozenset({"case", "reply", "evidence", "expected", "skills", "conversation"})


@dataclass(frozen=True)
class PromptSection:
    """One section of the prompt pipeline; `template` is Jinja2 text."""

    name: str
    path: str
    role: Role
    template: str


def parse_template(path: str, data: bytes, known: frozenset[str]) -> tuple[str | None, list[Problem]]:
    """Read a section's template; None when it is no template. A variable beyond `known` is a warning."""
    text, problems = read_text(path, data)
    if text is None:
        return None, problems
    try:
        unknown = sorted(variables_of(text) - known)
    except TemplateUnusable as failure:
        problems.append(error(path, failure.line, "template_syntax", str(failure)))
        return None, problems
    if unknown:
        hint = f"known are {', '.join(sorted(known))}"
        names = ", ".join(unknown)
        problems.append(
            warning(path, _line_with(text, unknown[0]), "template_variable", f"not known: {names}", hint)
        )
    return text, problems


def _line_with(text: str, word: str) -> int:
    return next((number for number, line in enumerate(text.split("\n"), 1) if word in line), 0)
