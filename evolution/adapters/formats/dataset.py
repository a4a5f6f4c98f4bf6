"""Dataset files: JSON Lines, one case on each line.

    {"key": "refund-001", "category": "refund", "language": "en", "split": "dev",
     "request": {"danmaku": [{"user": "Ann", "text": "Can I return it?"}], "history": []},
     "context": {...},
     "fixtures": {"get_policy": [{"arguments": {}, "result": {"days": 30}}]},
     "expected": {"facts": [{"fact": "30 days", "accept": ["30 days", "30-day"]}],
                  "forbidden": [{"claim": "a refund without limit", "match": ["any time"]}], "language": "en"}}

`split` is dev, guard (must never fail), sealed or calibration. `request` and `context` are what the prompts of the
harness read; `fixtures` answer its tools; `expected` is seen by the judge alone.

A request with a user is a conversation: a model plays the user, who speaks first where there are no danmaku, and the
agent is run anew for each of its replies. `stop`, `turns` (most replies, 6) and `language` may be left out:

     "request": {"user": {"persona": "in a hurry", "goal": "learn the price of link 3; learn when it ships",
                          "stop": "the agent says it can't tell", "turns": 4, "language": "en"}}

`faults` may be left out too: what strikes the tool calls of this case, whatever is measured. `kind` is timeout,
malformed, permission_denied or server_error; `tool` a name or "*"; `rate` a share of the calls, reproducible; `times`
the most calls of a tool:

     "faults": [{"kind": "timeout", "tool": "get_stock", "rate": 0.5, "times": 1}]

A dataset version can't be changed later, so a file with a wrong line is refused whole, with every wrong line named.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from pydantic import TypeAdapter, ValidationError

from evolution.demonstration import CaseData
from evolution.errors import BrokenInput
from evolution.states import Split
from harness_repo.runtime.faults import read_faults
from harness_repo.runtime.simulated_user import is_conversation, read_profile

_CASE = TypeAdapter(CaseData)
MOST_PROBLEMS = 20


def read_dataset(path: Path) -> list[CaseData]:
    """Read all cases of a file; BrokenInput names file, line and field of what is wrong."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        values = {"name": path, "problem": failure}
        raise BrokenInput(_("%(name)s can't be read: %(problem)s") % values) from None
    cases: list[CaseData] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                cases.append(_read_case(line))
            except (ValidationError, ValueError) as failure:
                problems.append(f"{path.name}:{number}: {_explain(failure)}")
    if problems:
        raise BrokenInput("\n".join(problems[:MOST_PROBLEMS]))
    return cases


def _read_case(line: str) -> CaseData:
    case = _CASE.validate_json(line, strict=True)
    if case.split not in Split.values:
        raise ValueError(f"split: {case.split!r} is none of {', '.join(Split.values)}")
    read_faults(case.faults)
    if is_conversation(case.request):
        _check_user(case.request)
    return case


def _check_user(request: Mapping[str, Any]) -> None:
    try:
        read_profile(request)
    except ValueError as failure:
        raise ValueError(f"request{str(failure).removeprefix('$')}") from None


def _explain(failure: ValueError) -> str:
    """The first thing that is wrong, with its field."""
    if not isinstance(failure, ValidationError):
        return str(failure)
    first = failure.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{field}: {first['msg']}" if field else first["msg"]
