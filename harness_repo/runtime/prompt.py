"""Assembles the prompt of a run from the harness's sections; says which section and line went wrong."""

import functools
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import jinja2

from harness_repo.format.harness import Harness
from harness_repo.format.prompts import PromptSection
from harness_repo.format.templates import template_environment
from harness_repo.runtime.chat import Message
from harness_repo.runtime.computing import OutOfTime

# A template that loops over a loop would fill the memory long before a model could read it.
MAX_SECTION_CHARACTERS = 400_000


class PromptError(Exception):
    """A section that cannot be rendered; `section` is its name, `line` is 1-based, 0 if unknown."""

    def __init__(self, message: str, section: str, line: int) -> None:
        super().__init__(f"prompt section {section!r}, line {line}: {message}")
        self.section = section
        self.line = line


def assemble_prompt(harness: Harness, variables: Mapping[str, Any]) -> list[Message]:
    """The first messages of a run: one system message, then one user message, empty ones left out.

    Sections see `variables` and `skills`, a list of {"name", "description", "kind"}.
    Raises PromptError for a broken template or a variable that does not exist.
    """
    known = {"skills": skill_index(harness), **variables}
    messages: list[Message] = []
    for role in ("system", "user"):
        parts = [render_section(section, known) for section in harness.prompt if section.role == role]
        content = "\n\n".join(part for part in parts if part)
        if content:
            messages.append({"role": role, "content": content})
    return messages


def skill_index(harness: Harness) -> list[dict[str, str]]:
    """What is always visible of the skills, in name order."""
    return [
        {"name": skill.name, "description": skill.description, "kind": skill.kind}
        for _, skill in sorted(harness.skills.items())
    ]


def render_section(section: PromptSection, variables: Mapping[str, Any]) -> str:
    """The section's text without surrounding blank space, or PromptError."""
    try:
        return _limited(_template(section.template).generate(dict(variables))).strip()
    except jinja2.TemplateSyntaxError as failure:
        raise PromptError(failure.message or "syntax error", section.name, failure.lineno) from failure
    except OutOfTime as failure:
        failure.where = f"prompt section {section.name!r}"
        raise
    except MemoryError:
        raise
    except Exception as failure:
        raise PromptError(str(failure), section.name, _template_line(failure)) from failure


@functools.lru_cache(maxsize=512)
def _template(source: str) -> jinja2.Template:
    template = template_environment().from_string(source)
    # Copied for every rendering, which takes long of the chain that jinja2 makes of them.
    template.globals = dict(template.globals)
    return template


def _limited(chunks: Iterable[str]) -> str:
    parts: list[str] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_SECTION_CHARACTERS:
            raise ValueError(f"longer than {MAX_SECTION_CHARACTERS} characters")
        parts.append(chunk)
    return "".join(parts)


def _template_line(failure: BaseException) -> int:
    """The line of the template that raised, which Jinja2 puts into the traceback."""
    frames = traceback.extract_tb(failure.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == "<template>"), 0)
