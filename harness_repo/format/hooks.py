"""Hooks of a harness (hooks/*.yaml): a condition, a check, and what to do when the check fails."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from harness_repo.format.cel import CelError, check_cel
from harness_repo.format.json_schema import SchemaUnusable, check_json_schema
from harness_repo.format.patterns import PatternError, compile_pattern
from harness_repo.format.problems import Problem, error
from harness_repo.format.yamlfile import YamlFile, check_schema, read_yaml
from harness_repo.format.yamlnodes import Location

Event = Literal["input", "tool_call", "tool_result", "reply"]
Action = Literal["retry", "rewrite", "block", "warn"]

# A reply can be mended in every way; what comes in or goes to a tool cannot be rewritten in silence.
ACTIONS: dict[str, tuple[str, ...]] = {
    "input": ("block", "warn"),
    "tool_call": ("retry", "block", "warn"),
    "tool_result": ("retry", "block", "warn"),
    "reply": ("retry", "rewrite", "block", "warn"),
}

# What they look for is said in replies only.
REPLY_CHECKS = frozenset({"cites_evidence", "no_promise"})

# What each named check knows beside `kind`.
_SETTINGS = {
    "requires_skill": {"skills", "skill_kind"},
    "max_length": {"characters"},
    "forbid": {"patterns"},
    "valid_json": {"schema"},
    "cites_evidence": set[str](),
    "no_promise": {"phrases", "allow"},
}


@dataclass(frozen=True)
class Substitution:
    """One regex replacement of a rewrite."""

    pattern: str
    replacement: str


@dataclass(frozen=True)
class OnFail:
    """What a failed check leads to."""

    action: Action
    # Told to the model on retry, recorded otherwise.
    message: str = ""
    # The fallback of a block, or the fixed text of a rewrite.
    reply: str | None = None
    # The regex replacements of a rewrite, applied in order.
    substitute: tuple[Substitution, ...] = ()


@dataclass(frozen=True)
class Hook:
    """One rule: at `event`, if `when` holds, `check` must pass.

    `check` is {"kind": ..., its settings}, {"cel": ...}, {"schema": ...} or {"regex": ...}; `when` is CEL as a text,
    or another check. See schemas/hook.schema.json.
    """

    name: str
    event: Event
    when: str | dict[str, Any] | None
    check: dict[str, Any]
    on_fail: OnFail = field(default_factory=lambda: OnFail("warn"))
    path: str = ""

    def named_skills(self) -> list[str]:
        """The skills that its condition and its check name."""
        checks = [check for check in (self.when, self.check) if isinstance(check, dict)]
        return [name for check in checks for name in check.get("skills", ())]


def parse_hook(path: str, data: bytes) -> tuple[Hook | None, list[Problem]]:
    """Read a hook file; None when anything in it is an error, since half a rule is another rule."""
    read, problems = read_yaml(path, data)
    if read is None:
        return None, problems
    more, _ = check_schema(path, read, "hook")
    problems += more
    if not any(problem.is_error for problem in problems):
        problems += list(_meaning_problems(path, read))
    if any(problem.is_error for problem in problems):
        return None, problems
    return _build(path, read.value), problems


def _build(path: str, values: Any) -> Hook:
    fail = values["on_fail"]
    pairs = (Substitution(entry["pattern"], entry["replacement"]) for entry in fail.get("substitute", ()))
    on_fail = OnFail(fail["action"], fail.get("message", ""), fail.get("reply"), tuple(pairs))
    when = values.get("when")
    condition = known_check(when) if isinstance(when, dict) else when
    return Hook(values["name"], values["event"], condition, known_check(values["check"]), on_fail, path)


def known_check(check: dict[str, Any]) -> dict[str, Any]:
    """The check without what its kind does not know, which is a warning in the file and nothing to go by."""
    if "kind" not in check:
        return check
    return {key: value for key, value in check.items() if key in {"kind", *_SETTINGS[check["kind"]]}}


def _meaning_problems(path: str, read: YamlFile) -> Iterator[Problem]:
    """What a schema cannot say: expressions that do not compile, actions that do not fit the event."""
    values: Any = read.value
    event, action, when = values["event"], values["on_fail"]["action"], values.get("when")
    if action not in ACTIONS[event]:
        hint = f"at {event}: {', '.join(ACTIONS[event])}"
        line = read.line_of(("on_fail", "action"))
        yield error(path, line, "hook_action", f"{action} is not possible at {event}", hint)
    if isinstance(when, str):
        yield from _cel_problem(path, read, ("when",), when)
    elif when is not None:
        yield from _check_problems(path, read, "when", event)
    yield from _check_problems(path, read, "check", event)
    for number, entry in enumerate(values["on_fail"].get("substitute", ())):
        yield from _regex_problem(path, read, ("on_fail", "substitute", number), entry["pattern"])


def _check_problems(path: str, read: YamlFile, key: str, event: str) -> Iterator[Problem]:
    values: Any = read.value
    check = known_check(values[key])
    kind = check.get("kind")
    if kind in REPLY_CHECKS and event != "reply":
        yield error(path, read.line_of((key, "kind")), "hook_check", f"{kind} checks replies only")
    if "cel" in check:
        yield from _cel_problem(path, read, (key, "cel"), check["cel"])
    if "schema" in check:
        yield from _schema_problem(path, read, (key, "schema"), check["schema"])
    if "regex" in check:
        yield from _regex_problem(path, read, (key, "regex"), check["regex"])
    for number, pattern in enumerate(check.get("patterns", ())):
        yield from _regex_problem(path, read, (key, "patterns", number), pattern)


def _cel_problem(path: str, read: YamlFile, location: Location, source: str) -> Iterator[Problem]:
    try:
        check_cel(source)
    except CelError as failure:
        yield error(path, read.line_of(location), "cel_syntax", f"{failure}, column {failure.column}")


def _schema_problem(path: str, read: YamlFile, location: Location, schema: object) -> Iterator[Problem]:
    try:
        check_json_schema(schema)
    except SchemaUnusable as failure:
        yield error(path, read.line_of(location), "check_schema", str(failure))


def _regex_problem(path: str, read: YamlFile, location: Location, pattern: str) -> Iterator[Problem]:
    try:
        compile_pattern(pattern)
    except PatternError as failure:
        yield error(path, read.line_of(location), "regex_syntax", str(failure))
