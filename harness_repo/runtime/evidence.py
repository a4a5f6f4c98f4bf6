"""What a reply may rest on: results of tools, and what the harness itself tells the model.

A viewer cannot add to it. The harness's own words in a prompt are found by assembling the prompt once more without
the texts of the request, and not by looking for those texts in the prompt.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness_repo.format.harness import Harness
from harness_repo.runtime.prompt import PromptError, render_section, skill_index

Payload = Mapping[str, Any]

# In a payload: what the prompt's sections were rendered with. No name of expressions.
VARIABLES = "variables"
# What somebody outside has said, in an agent's variables and in a judge's.
_FROM_OUTSIDE = ("request", "danmaku", "history", "case", "reply", "conversation")
_ROLES = frozenset({"user", "assistant", "system"})
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


def results(payload: Payload) -> Iterator[str]:
    """The results of tool calls; what the model was not told, for an error of the call, is no evidence."""
    for call in payload.get("tool_calls", ()):
        if call.get("error") is None:
            yield to_json(call.get("result"))


def loaded_skills(harness: Harness, payload: Payload) -> Iterator[str]:
    """The bodies of the skills that were loaded, which load_skill showed the model."""
    for name in payload.get("skills_loaded", ()):
        if name in harness.skills:
            yield harness.skills[name].body


def own_prompt(harness: Harness, payload: Payload) -> Iterator[str]:
    """The sections of the prompt without anything that came with the request; none without the variables.

    A section that cannot be rendered without it is left out.
    """
    variables = payload.get(VARIABLES)
    if variables is None:
        return
    blank = {name: _blanked(variables[name]) for name in _FROM_OUTSIDE if name in variables}
    known = {"skills": skill_index(harness), **variables, **blank}
    for section in harness.prompt:
        try:
            yield render_section(section, known)
        except PromptError:
            continue


def to_json(value: object) -> str:
    """The value as evidence is read: JSON, in Chinese where it is Chinese."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _blanked(value: object) -> object:
    """The value in its shape, with every text empty but the roles of turns."""
    if isinstance(value, str):
        return value if value in _ROLES else ""
    if isinstance(value, Mapping):
        return {key: _blanked(inner) for key, inner in value.items() if _KEY.fullmatch(str(key))}
    return [_blanked(inner) for inner in value] if isinstance(value, list | tuple) else value
