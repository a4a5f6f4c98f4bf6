"""Hooks of a harness (hooks/*.yaml): a condition, a check, and what to do when the check fails."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from harness_repo.format.cel import CelError, check_cel
from harness_repo.format.cel_names import EVENT_VARIABLES, VARIABLES
from harness_repo.format.json_schema import SchemaUnusable, check_json_schema
from harness_repo.format.patterns import PatternError, compile_pattern
from harness_repo.format.problems import Problem, error
from harness_repo.format.yamlfile import YamlFile, as_list, as_mapping, check_schema, read_yaml
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
    """Read a hook file; None when anything in it is an error, since half a rule is another rule.

    All that is wrong is told at once: what one part says does not wait for the others to be right.
    """
    read, problems = read_yaml(path, data)
    if read is None:
        return None, problems
    more, _ = check_schema(path, read, "hook")
    problems += [*more, *_meaning_problems(path, read)]
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
    kind = check["kind"]
    known = _SETTINGS.get(kind, set()) if isinstance(kind, str) else set()
    return {key: value for key, value in check.items() if key in {"kind", *known}}


def _meaning_problems(path: str, read: YamlFile) -> Iterator[Problem]:
    """What a schema cannot say, of all parts that are what they should be."""
    values = as_mapping(read.value)
    fail, when = as_mapping(values.get("on_fail")), values.get("when")
    event = values.get("event") if values.get("event") in list(ACTIONS) else None
    if event is not None:
        yield from _action_problem(path, read, event, fail.get("action"))
    if isinstance(when, str):
        yield from _cel_problems(path, read, ("when",), when, event)
    else:
        yield from _check_problems(path, read, "when", event)
    yield from _check_problems(path, read, "check", event)
    for number, entry in enumerate(as_list(fail.get("substitute"))):
        pattern = as_mapping(entry).get("pattern")
        yield from _regex_problem(path, read, ("on_fail", "substitute", number), pattern)


def _action_problem(path: str, read: YamlFile, event: str, action: object) -> Iterator[Problem]:
    if action not in ACTIONS[event] and action in ACTIONS["reply"]:
        hint = f"at {event}: {', '.join(ACTIONS[event])}"
        line = read.line_of(("on_fail", "action"))
        yield error(path, line, "hook_action", f"{action} is not possible at {event}", hint)


def _check_problems(path: str, read: YamlFile, key: str, event: str | None) -> Iterator[Problem]:
    check = known_check(as_mapping(as_mapping(read.value).get(key)))
    kind = check.get("kind")
    if event not in (None, "reply") and kind in list(REPLY_CHECKS):
        yield error(path, read.line_of((key, "kind")), "hook_check", f"{kind} checks replies only")
    yield from _cel_problems(path, read, (key, "cel"), check.get("cel"), event)
    yield from _schema_problem(path, read, (key, "schema"), check.get("schema"))
    yield from _regex_problem(path, read, (key, "regex"), check.get("regex"))
    for number, pattern in enumerate(as_list(check.get("patterns"))):
        yield from _regex_problem(path, read, (key, "patterns", number), pattern)


def _cel_problems(
    path: str, read: YamlFile, location: Location, source: object, event: str | None
) -> Iterator[Problem]:
    """An expression that does not compile, and names in it that are never there: its rule would never be checked."""
    if not isinstance(source, str) or not source:
        return
    line = read.line_of(location)
    variables = VARIABLES if event is None else EVENT_VARIABLES[event]
    try:
        unknown = check_cel(source, variables)
    except CelError as failure:
        column = f", column {failure.column}" if failure.column else ""
        yield error(path, line, "cel_syntax", f"{failure}{column}")
        return
    for name in unknown:
        column = f", column {name.column}" if name.column else ""
        if name.is_function:
            yield error(path, line, "cel_function", f"there is no function {name.name[:80]!r}{column}")
            continue
        hint = f"there are: {', '.join(sorted(variables))}"
        where = f" at {event}" if name.name in VARIABLES else ""
        yield error(path, line, "cel_variable", f"there is no {name.name[:80]!r}{where}{column}", hint)


def _schema_problem(path: str, read: YamlFile, location: Location, schema: object) -> Iterator[Problem]:
    try:
        check_json_schema(as_mapping(schema))
    except SchemaUnusable as failure:
        yield error(path, read.line_of(location), "check_schema", str(failure))


def _regex_problem(path: str, read: YamlFile, location: Location, pattern: object) -> Iterator[Problem]:
    if not isinstance(pattern, str):
        return
    try:
        compile_pattern(pattern)
    except PatternError as failure:
        yield error(path, read.line_of(location), "regex_syntax", str(failure))
