"""CEL, the expression language of hooks: compiled once, evaluated over JSON values, never able to act."""

import functools
from collections.abc import Mapping
from typing import Any

from celpy import Environment, Runner
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.celtypes import BoolType
from celpy.evaluation import CELEvalError

MAX_CHARACTERS = 4000
# What goes through lists, and how many of them may stand inside one another: each multiplies the work.
MACROS = frozenset({"all", "exists", "exists_one", "filter", "map", "min", "reduce"})
MAX_MACRO_DEPTH = 2


class CelError(Exception):
    """An expression that cannot be compiled or evaluated; `column` is 1-based, 0 if unknown."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


def check_cel(source: str) -> None:
    """Raise CelError when the expression cannot be compiled."""
    _program(source)


def evaluate_cel(source: str, variables: Mapping[str, Any]) -> bool:
    """Whether the expression holds for the variables (JSON values); CelError if it gives no boolean."""
    try:
        result = _program(source).evaluate({key: json_to_cel(value) for key, value in variables.items()})
    except CELEvalError as failure:
        # The library's messages continue with a dump of every variable.
        raise CelError(str(failure.args[0]).split(" (in activation")[0][:300]) from failure
    except (ValueError, TypeError, RecursionError) as failure:
        raise CelError(f"cannot be evaluated: {failure}") from failure
    if not isinstance(result, BoolType | bool):
        raise CelError(f"gives {type(result).__name__}, not true or false")
    return bool(result)


@functools.lru_cache(maxsize=512)
def _program(source: str) -> Runner:
    if len(source) > MAX_CHARACTERS:
        raise CelError(f"longer than {MAX_CHARACTERS} characters")
    environment = Environment()
    try:
        tree = environment.compile(source)
        if _macro_depth(tree) > MAX_MACRO_DEPTH:
            raise CelError(f"more than {MAX_MACRO_DEPTH} of {', '.join(sorted(MACROS))} inside one another")
        return environment.program(tree)
    except CELParseError as failure:
        raise CelError("not a CEL expression", failure.column or 0) from failure
    except RecursionError as failure:
        raise CelError("nested too deeply") from failure


def _macro_depth(tree: Any) -> int:
    """How many macros stand inside one another; one that goes on from another's result is not inside it."""
    children: list[Any] = getattr(tree, "children", [])
    depths = [_macro_depth(child) for child in children]
    if getattr(tree, "data", "") == "member_dot_arg" and children[1] in MACROS:
        depths[2] += 1
    return max(depths, default=0)
