"""Prompt sections of a harness (prompts/*.md): Jinja2 templates, in the order of harness.yaml."""

import functools
from dataclasses import dataclass
from typing import Literal

import jinja2
import jinja2.meta
import jinja2.sandbox

from harness_repo.format.problems import Problem, error, warning
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


# Of one loop over numbers; what a template computes in all is limited where it is rendered.
MOST_NUMBERS = 1000


@functools.cache
def template_environment() -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    """The sandbox of all templates: nothing private, no writing, no undefined names, no gaps."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["range"] = _numbers
    # Makes texts by chance: no two runs would be the same.
    del environment.globals["lipsum"]
    return environment


def _numbers(*bounds: int) -> range:
    """Python's range, of MOST_NUMBERS at most."""
    numbers = range(*bounds)
    # The length of a range may be more than a length can be.
    if numbers[MOST_NUMBERS:]:
        raise ValueError(f"a range of more than {MOST_NUMBERS} numbers")
    return numbers


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
    except RecursionError:
        problems.append(error(path, 0, "template_syntax", "nested too deeply"))
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
