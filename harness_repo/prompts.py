"""Prompt sections of a harness (prompts/*.md): Jinja2 templates, in the order of harness.yaml."""

import functools
from dataclasses import dataclass
from typing import Literal

import jinja2
import jinja2.meta
import jinja2.sandbox

from harness_repo.problems import Problem, error, warning
from harness_repo.textfile import read_text

Role = Literal["system", "user"]

# What the runtime hands to an agent's sections, and the loop to a judge's.
AGENT_VARIABLES = frozenset({"request", "danmaku", "room", "products", "faq", "history", "skills"})
JUDGE_VARIABLES = frozenset({"case", "reply", "evidence", "expected", "skills"})


@dataclass(frozen=True)
class PromptSection:
    """One section of the prompt pipeline; `template` is Jinja2 text."""

    name: str
    path: str
    role: Role
    template: str


@functools.cache
def template_environment() -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    """The sandbox of all templates: nothing private, no writing, no undefined names, no gaps."""
    return jinja2.sandbox.ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def parse_template(path: str, data: bytes, known: frozenset[str]) -> tuple[str | None, list[Problem]]:
    """Read a section's template; None when it is no template. A variable beyond `known` is a warning."""
    text, problems = read_text(path, data)
    if text is None:
        return None, problems
    try:
        unknown = sorted(variables_of(text) - known)
    except jinja2.TemplateSyntaxError as failure:
        problems.append(error(path, failure.lineno, "template_syntax", failure.message or "syntax error"))
        return None, problems
    if unknown:
        hint = f"known are {', '.join(sorted(known))}"
        names = ", ".join(unknown)
        problems.append(
            warning(path, _line_with(text, unknown[0]), "template_variable", f"not known: {names}", hint)
        )
    return text, problems


# Every run assembles the same few sections: parse each text once.
@functools.lru_cache(maxsize=512)
def variables_of(template: str) -> frozenset[str]:
    """The variables that a template takes from outside; raises jinja2.TemplateSyntaxError."""
    return frozenset(jinja2.meta.find_undeclared_variables(template_environment().parse(template)))


def _line_with(text: str, word: str) -> int:
    return next((number for number, line in enumerate(text.split("\n"), 1) if word in line), 0)
