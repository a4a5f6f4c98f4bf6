"""The names that a CEL expression uses and nobody has: the library finds them only when a rule is evaluated."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from celpy.evaluation import base_functions

# With how many arguments each of them takes: what goes through lists.
MACROS = {"all": 2, "exists": 2, "exists_one": 2, "filter": 2, "map": 2, "min": 0, "reduce": 4}
_EVERYWHERE = frozenset({"turn", "request", "danmaku", "prompt", "skills_loaded", "tool_calls"})
# Event -> what the expressions of its hooks can name; elsewhere there is nothing in it.
EVENT_VARIABLES = {
    "input": _EVERYWHERE,
    "tool_call": _EVERYWHERE | {"tool"},
    "tool_result": _EVERYWHERE | {"tool", "result"},
    "reply": _EVERYWHERE | {"reply"},
}
VARIABLES = frozenset().union(*EVENT_VARIABLES.values())

_FUNCTIONS = frozenset(name for name in base_functions if name.isidentifier()) | {"has", "dyn"}
# Types are values too: type(result) == map.
_TYPES = frozenset(
    {
        "bool",
        "bytes",
        "double",
        "duration",
        "google",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "timestamp",
    }
    | {"type", "uint"}
)
# How many of a macro's arguments are names that the last one may use.
_BOUND = {"all": 1, "exists": 1, "exists_one": 1, "filter": 1, "map": 1, "reduce": 2}


@dataclass(frozen=True)
class UnknownName:
    """A name that stands for nothing."""

    name: str
    # 1-based; 0 if unknown.
    column: int
    is_function: bool


def find_unknown_names(tree: Any, variables: frozenset[str]) -> list[UnknownName]:
    """The variables and functions of a parsed expression that nobody has, each once; RecursionError if too deep."""
    found: dict[tuple[str, bool], UnknownName] = {}
    for one in _unknown_names(tree, variables | _TYPES):
        found.setdefault((one.name, one.is_function), one)
    return list(found.values())


def bound_names(macro: str, arguments: list[Any]) -> list[str | None]:
    """The names that a macro binds; None for an argument that should be a name and is none."""
    return [_plain_name(argument) for argument in arguments[: _BOUND.get(macro, 0)]]


def _unknown_names(tree: Any, known: frozenset[str]) -> Iterator[UnknownName]:
    kind, children = getattr(tree, "data", ""), getattr(tree, "children", [])
    if kind in {"ident", "dot_ident"} and children[0] not in known:
        yield _unknown(children[0], is_function=False)
    if kind in {"ident_arg", "dot_ident_arg"} and children[0] not in _FUNCTIONS:
        yield _unknown(children[0], is_function=True)
    if kind != "member_dot_arg":
        for child in children:
            yield from _unknown_names(child, known)
        return
    name, arguments = children[1], children[2].children if len(children) > 2 else []
    yield from _unknown_names(children[0], known)
    if name not in _FUNCTIONS and name not in MACROS:
        yield _unknown(name, is_function=True)
    names = bound_names(name, arguments)
    inner = known | {one for one in names if one is not None}
    for number, argument in enumerate(arguments[len(names) :], len(names)):
        is_last = number == len(arguments) - 1
        yield from _unknown_names(argument, inner if is_last else known)


def _unknown(token: Any, *, is_function: bool) -> UnknownName:
    return UnknownName(str(token), getattr(token, "column", None) or 0, is_function)


def _plain_name(tree: Any) -> str | None:
    """The name, when the expression is nothing but one."""
    while len(getattr(tree, "children", [])) == 1 and tree.data != "ident":
        tree = tree.children[0]
    return str(tree.children[0]) if getattr(tree, "data", "") == "ident" else None
