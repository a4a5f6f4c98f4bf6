"""How heavy a harness is in tokens, so that a proposal says what it adds: a rule is read in every call it stands in.

Counted by `estimate_tokens`, the same counter for both versions; templates count as they are written, without what a
request puts into them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from evolution.prompts.tokens import estimate_tokens
from harness_repo.format.harness import Harness, read_harness
from harness_repo.runtime.prompt import skill_index


@dataclass(frozen=True)
class Weight:
    """Tokens of one version, estimated."""

    # prompt sections, the index of the skills, and what hooks tell the model when they fail
    always: int = 0
    # the bodies of all skills; a case loads some of them
    on_demand: int = 0
    # what is sent of the tools: names, descriptions, schemas
    tools: int = 0


def weigh_harness(files: Mapping[str, bytes]) -> Weight:
    """The weight of a version, given its files; what cannot be read weighs nothing."""
    harness = read_harness(files)
    return Weight(
        always=_count(_always(harness)),
        on_demand=_count(skill.body for skill in harness.skills.values()),
        tools=_count(json.dumps(tool.definition(), ensure_ascii=False) for tool in harness.tools.values()),
    )


def measure_growth(base: Mapping[str, bytes], head: Mapping[str, bytes]) -> dict[str, list[int]]:
    """Field of Weight -> its tokens before and after."""
    before, after = asdict(weigh_harness(base)), asdict(weigh_harness(head))
    return {name: [before[name], after[name]] for name in before}


def _always(harness: Harness) -> Iterator[str]:
    for section in harness.prompt:
        yield section.template
    for skill in skill_index(harness):
        yield f"- {skill['name']} ({skill['kind']}): {skill['description']}"
    for hook in harness.hooks:
        yield hook.on_fail.message


def _count(texts: Iterator[str]) -> int:
    return estimate_tokens("\n".join(texts))
