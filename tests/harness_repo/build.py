"""A small harness for tests, and plain git as the other route to a repository."""

import os
import subprocess
from pathlib import Path

CONFIG = b"""format: 1
name: tiny
kind: agent
model: {temperature: 0}
limits: {turns: 4, tool_calls: 3, hook_retries: 1, seconds: 5}
prompt:
  - {name: role, file: prompts/role.md}
  - {name: request, file: prompts/request.md, role: user}
reply_skill_required: true
"""

SKILL = b"""---
name: item-qa
description: Questions about an item.
metadata:
  kind: reply
---
# Item questions

Call get_item.
"""

HOOK = """name: short
event: reply
check: {kind: max_length, characters: 20}
on_fail: {action: retry, message: "- 太长了"}
""".encode()

TOOL = """name: get_item
description: Looks up an item.
parameters:
  type: object
  properties: {link_id: {type: integer}}
  required: [link_id]
  additionalProperties: false
returns: {price: 价格}
source: {kind: fixture}
""".encode()

FILES = {
    "harness.yaml": CONFIG,
    "prompts/role.md": b"You sell.\n{% for skill in skills %}\n- {{ skill.name }}\n{% endfor %}\n",
    "prompts/request.md": b"{% for item in danmaku %}\n- {{ item.text }}\n{% endfor %}\n",
    "skills/item-qa/SKILL.md": SKILL,
    "hooks/short.yaml": HOOK,
    "tools/get_item.yaml": TOOL,
}


def run_git(path: Path, *arguments: str, env: dict[str, str] | None = None) -> bytes:
    """Plain git on a repository, for right values from outside."""
    identity = {
        f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    command = ["git", "--git-dir", str(path), *arguments]
    environment = {**os.environ, **identity, **(env or {})}
    return subprocess.run(command, check=True, capture_output=True, env=environment).stdout
