#!/usr/bin/env python3
"""An agent that the workbench runs as a command: one case on standard input, one trajectory on standard output.

Nothing of the workbench is imported. What there is to know:

- The working directory is a throwaway copy of the version that is measured, so that a relative path finds the
  files of that very version; here it is skills/*/SKILL.md.
- Standard output is for the one JSON object. Standard error is for people: its end is kept with the result.
- {"reply": "..."} is enough. What else is given (tool_calls, usage, messages, ...) is shown with the result, and the
  judge is given the tool calls as evidence. schemas/trajectory.schema.json describes all of it.
- An exit code other than 0 means that the run failed, and is never a score.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")


def main() -> None:
    """Answer the case."""
    case = json.load(sys.stdin)
    trajectory = answer(case, read_skills(Path("skills")))
    print(f"answered {case['key']}", file=sys.stderr)  # noqa: T201  a program prints
    json.dump(trajectory, sys.stdout)


def read_skills(folder: Path) -> dict[str, str]:
    """Skill name -> body, of the version that lies in the working directory."""
    return {path.parent.name: path.read_text("utf-8") for path in sorted(folder.glob("*/SKILL.md"))}


def answer(case: dict[str, Any], skills: dict[str, str]) -> dict[str, Any]:
    """A trajectory: the closest skill, the first answer that the case has for each tool the skill names."""
    question = " ".join(item["text"] for item in case["request"].get("danmaku", []))
    name = closest(question, skills)
    calls = [
        {
            "turn": 1,
            "name": tool,
            "arguments": entries[0].get("arguments", {}),
            "result": entries[0]["result"],
        }
        for tool, entries in sorted(case.get("fixtures", {}).items())
        if entries and tool in skills.get(name, "")
    ]
    said = "; ".join(f"{key}: {value}" for call in calls for key, value in call["result"].items())
    return {
        "format": "trajectory/1",
        "status": "ok",
        "reply": said or "Let me check that for you.",
        "skills_loaded": [name] if name else [],
        "tool_calls": calls,
    }


def closest(question: str, skills: dict[str, str]) -> str:
    """The skill that shares most words with the question; "" when there is no skill."""
    words = set(WORD.findall(question.lower()))
    return max(skills, key=lambda name: len(words & set(WORD.findall(skills[name].lower()))), default="")


if __name__ == "__main__":
    main()
