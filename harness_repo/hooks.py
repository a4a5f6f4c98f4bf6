"""Hooks of a harness (hooks/*.yaml): a condition, a check, and what to do when the check fails."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from harness_repo.cel import CelError, check_cel
from harness_repo.json_schema import SchemaUnusable, check_json_schema
from harness_repo.patterns import PatternError, compile_pattern
from harness_repo.problems import Problem, error
from harness_repo.yamlfile import Location, YamlFile, check_schema, read_yaml

Event = Literal["input", "tool_call", "tool_result", "reply"]
Action = Literal["retry", "rewrite", "block", "warn"]

# A reply can be mended in every way; what comes in or goes to a tool cannot be rewritten in silence.
ACTIONS: dict[str, tuple[str, ...]] = {
    "input": ("block", "warn"),
    "tool_call": ("retry", "block", "warn"),
    "tool_result": ("retry", "block", "warn"),
    "reply": ("retry", "rewrite", "block", "warn"),
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
    """One rule: at `event`, if `when` (CEL) holds, `check` must pass.

    `check` is {"kind": ..., its settings} or {"cel": "..."}; see schemas/hook.schema.json.
    """

    name: str
    event: Event
    when: str | None
    check: dict[str, Any]
    on_fail: OnFail = field(default_factory=lambda: OnFail("warn"))
    path: str = ""


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
    return Hook(values["name"], values["event"], values.get("when"), values["check"], on_fail, path)


def _meaning_problems(path: str, read: YamlFile) -> Iterator[Problem]:
    """What a schema cannot say: expressions that do not compile, actions that do not fit the event."""
    values: Any = read.value
    event, action, check = values["event"], values["on_fail"]["action"], values["check"]
    if action not in ACTIONS[event]:
        hint = f"at {event}: {', '.join(ACTIONS[event])}"
        line = read.line_of(("on_fail", "action"))
        yield error(path, line, "hook_action", f"{action} is not possible at {event}", hint)
    if check.get("kind") == "cites_evidence" and event != "reply":
        yield error(path, read.line_of(("check", "kind")), "hook_check", "cites_evidence checks replies only")
    for location, source in (("when",), values.get("when")), (("check", "cel"), check.get("cel")):
        if source is not None:
            yield from _cel_problem(path, read, location, source)
    if "schema" in check:
        yield from _schema_problem(path, read, check["schema"])
    for number, pattern in enumerate(check.get("patterns", ())):
        yield from _regex_problem(path, read, ("check", "patterns", number), pattern)
    for number, entry in enumerate(values["on_fail"].get("substitute", ())):
        yield from _regex_problem(path, read, ("on_fail", "substitute", number), entry["pattern"])


def _cel_problem(path: str, read: YamlFile, location: Location, source: str) -> Iterator[Problem]:
    try:
        check_cel(source)
    except CelError as failure:
        yield error(path, read.line_of(location), "cel_syntax", f"{failure}, column {failure.column}")


def _schema_problem(path: str, read: YamlFile, schema: object) -> Iterator[Problem]:
    try:
        check_json_schema(schema)
    except SchemaUnusable as failure:
        yield error(path, read.line_of(("check", "schema")), "check_schema", str(failure))


def _regex_problem(path: str, read: YamlFile, location: Location, pattern: str) -> Iterator[Problem]:
    try:
        compile_pattern(pattern)
    except PatternError as failure:
        yield error(path, read.line_of(location), "regex_syntax", str(failure))
