"""Dataset files: JSON Lines, one case on each line.

    {"key": "refund-001", "category": "refund", "language": "en", "split": "dev",
     "request": {"danmaku": [{"user": "Ann", "text": "Can I return it?"}], "history": []},
     "context": {...},
     "fixtures": {"get_policy": [{"arguments": {}, "result": {"days": 30}}]},
     "expected": {"facts": [{"fact": "30 days", "accept": ["30 days", "30-day"]}],
                  "forbidden": [{"claim": "a refund without limit", "match": ["any time"]}], "language": "en"}}

All fields are needed but `context` and `fixtures`, which are {} when left out, and `faults`.
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

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from evolution.demonstration import CaseData
from evolution.demonstration.rooms import Fixtures
from evolution.errors import BrokenInput
from evolution.states import Split
from harness_repo.runtime.context import normalise_request
from harness_repo.runtime.faults import read_faults
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.simulated_user import is_conversation, read_profile


@dataclass(frozen=True, kw_only=True)
class _Line(CaseData):
    """A case as a file has it, with what may be left out."""

    context: dict[str, Any] = field(default_factory=dict)
    fixtures: Fixtures = field(default_factory=dict)


_CASE = TypeAdapter(_Line)
# What stands for a field that can't be read while the others are looked at.
_SOUND: dict[str, Any] = {
    **dict.fromkeys(("key", "category", "language"), "x"),
    "split": Split.DEV.value,
    **{name: {} for name in ("request", "context", "fixtures", "expected")},
    "faults": [],
}
MOST_PROBLEMS = 20
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def read_dataset(path: Path) -> list[CaseData]:
    """Read all cases of a file; BrokenInput names file, line and field of all that is wrong."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        values = {"name": path, "problem": failure}
        raise BrokenInput(_("%(name)s can't be read: %(problem)s") % values) from None
    cases: list[CaseData] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            case, wrong = _read_case(line)
            problems += [f"{path.name}:{number}: {problem}" for problem in wrong]
            cases += [case] if case else []
    if problems:
        more = len(problems) - MOST_PROBLEMS
        rest = [_("and %(count)s more") % {"count": more}] if more > 0 else []
        raise BrokenInput("\n".join([*problems[:MOST_PROBLEMS], *rest]))
    return cases


def _read_case(line: str) -> tuple[CaseData | None, list[str]]:
    """The case of a line as far as it can be read, and all that is wrong with it."""
    try:
        return _checked(_CASE.validate_json(line, strict=True), line, [])
    except ValidationError as failure:
        errors = failure.errors(include_url=False, include_input=False)
    problems = [_explain(error) for error in errors]
    fields = {str(error["loc"][0]) for error in errors if error["loc"]}
    if not fields or not fields <= set(_SOUND):
        return None, problems
    # What is wrong with the other fields is said too.
    try:
        sound = json.dumps({**json.loads(line), **{name: _SOUND[name] for name in fields}})
        case = _CASE.validate_json(sound, strict=True)
    except (ValueError, RecursionError):
        return None, problems
    return _checked(case, line, problems)


def _checked(case: CaseData, line: str, problems: list[str]) -> tuple[CaseData, list[str]]:
    for check in _CHECKS:
        try:
            problems += check(case, line)
        except ValueError as failure:
            problems.append(str(failure))
    return case, problems


def _check_values(case: CaseData, _line: str) -> Iterator[str]:
    """What the database can't keep, and a key that nobody could write, with the field."""
    for name, value in asdict(case).items():
        for where, leaf in _leaves(name, value):
            if isinstance(leaf, str) and _UNSTORABLE.search(leaf):
                yield f"{where}: a text holds a NUL character or half a surrogate pair"
            if isinstance(leaf, float) and not math.isfinite(leaf):
                yield f"{where}: {leaf} is no number of JSON"
    if not case.key.strip() or not case.key.isprintable():
        yield "key: not a text of printable characters"


def _check_split(case: CaseData, _line: str) -> Iterator[str]:
    if case.split not in Split.values:
        yield f"split: {case.split!r} is none of {', '.join(Split.values)}"


def _check_nesting(_case: CaseData, line: str) -> Iterator[str]:
    """Nesting that nothing can walk over; numbers are looked at with their fields."""
    try:
        read_json(line)
    except ValueError as failure:
        if "not JSON" not in str(failure):
            yield str(failure)


def _check_faults(case: CaseData, _line: str) -> Iterator[str]:
    read_faults(case.faults)
    yield from ()


def _leaves(where: str, value: object) -> Iterator[tuple[str, object]]:
    """Every value in a JSON value that holds no other, keys of objects included, and where it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield where, key
            yield from _leaves(f"{where}.{key}", inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(f"{where}.{number}", inner)
    else:
        yield where, value


def _check_request(case: CaseData, _line: str) -> Iterator[str]:
    """What no agent could be given, with the field."""
    wrong = [problem for name in ("danmaku", "history") for problem in _check_turns(case.request, name)]
    yield from wrong
    if not wrong:
        normalise_request(case.request)


def _check_turns(request: Mapping[str, Any], name: str) -> Iterator[str]:
    entries = request.get(name, [])
    if not isinstance(entries, list):
        yield f"request.{name}: not a list"
        return
    for number, entry in enumerate(entries):
        yield from _check_turn(f"request.{name}.{number}", entry, may_be_text=name == "danmaku")


def _check_turn(where: str, entry: object, *, may_be_text: bool) -> Iterator[str]:
    if isinstance(entry, str) and may_be_text:
        return
    if not isinstance(entry, dict):
        yield f"{where}: not an object"
        return
    for name in ("user", "text", "role", "content"):
        if not isinstance(entry.get(name, ""), str):
            yield f"{where}.{name}: not a text"


def _check_fixtures(case: CaseData, _line: str) -> Iterator[str]:
    """Entries that no call could match, with the field."""
    for tool, entries in case.fixtures.items():
        for number, entry in enumerate(entries):
            if not isinstance(entry.get("arguments", {}), dict):
                yield f"fixtures.{tool}.{number}.arguments: not an object"


def _check_user(case: CaseData, _line: str) -> Iterator[str]:
    if is_conversation(case.request):
        try:
            read_profile(case.request)
        except ValueError as failure:
            yield f"request{str(failure).removeprefix('$')}"


def _explain(error: ErrorDetails) -> str:
    """What is wrong, with its field."""
    field = ".".join(map(str, error["loc"]))
    return f"{field}: {error['msg']}" if field else error["msg"]


_CHECKS: tuple[Callable[[CaseData, str], Iterator[str]], ...] = (
    _check_values,
    _check_split,
    _check_nesting,
    _check_faults,
    _check_request,
    _check_fixtures,
    _check_user,
)
