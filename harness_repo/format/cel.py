"""CEL, the expression language of hooks: compiled once, evaluated over JSON values, never able to act."""

import functools
from collections.abc import Mapping
from typing import Any

from celpy import Environment, Runner
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.celtypes import BoolType, IntType, ListType, MapType
from celpy.evaluation import CELEvalError

from harness_repo.format.cel_messages import in_words, type_in_words
from harness_repo.format.cel_names import MACROS, VARIABLES, UnknownName, bound_names, find_unknown_names

MAX_CHARACTERS = 4000
# How many macros may stand inside one another: each multiplies the work.
MAX_MACRO_DEPTH = 2

_LEAST_INT, _MOST_INT = -(2**63), 2**63 - 1


class CelError(Exception):
    """An expression that cannot be compiled or evaluated; `column` is 1-based, 0 if unknown."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


def check_cel(source: str, variables: frozenset[str] = VARIABLES) -> list[UnknownName]:
    """The names in the expression that stand for nothing; CelError when it cannot be compiled."""
    try:
        return find_unknown_names(_program(source).ast, variables)
    except RecursionError:
        raise CelError("nested too deeply") from None


def evaluate_cel(source: str, variables: Mapping[str, Any]) -> bool:
    """Whether the expression holds for the variables (JSON values); CelError if it gives no boolean.

    CEL's whole numbers have 64 bits: one beyond stands there as the largest or the least of them, so that whatever
    compares whole numbers still can.
    """
    program = _program(source)
    try:
        result = program.evaluate({key: _to_cel(value) for key, value in variables.items()})
    except CELEvalError as failure:
        # The library's messages continue with a dump of every variable.
        raise CelError(in_words(str(failure.args[0]).split(" (in activation")[0])) from failure
    except MemoryError:
        raise
    except Exception as failure:
        # The library raises what it stumbles over, such as an IndexError for an argument that is not there.
        raise CelError("it fails on these values") from failure
    if not isinstance(result, BoolType | bool):
        raise CelError(f"gives {type_in_words(type(result).__name__)}, and not true or false")
    return bool(result)


@functools.lru_cache(maxsize=512)
def _program(source: str) -> Runner:
    if len(source) > MAX_CHARACTERS:
        raise CelError(f"longer than {MAX_CHARACTERS} characters")
    environment = Environment()
    try:
        tree = environment.compile(source)
        _check_macros(tree)
        return environment.program(tree)
    except CELParseError as failure:
        raise CelError("not a CEL expression", failure.column or 0) from failure
    except RecursionError as failure:
        raise CelError("nested too deeply") from failure
    except CelError:
        raise
    except Exception as failure:
        raise CelError(f"cannot be compiled: {_first_line(failure)}") from failure


def _to_cel(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return IntType(max(_LEAST_INT, min(value, _MOST_INT)))
    if isinstance(value, list | tuple):
        return ListType([_to_cel(item) for item in value])
    if isinstance(value, dict):
        return MapType({_to_cel(key): _to_cel(item) for key, item in value.items()})
    return json_to_cel(value)


def _first_line(failure: Exception) -> str:
    return (str(failure).splitlines() or [type(failure).__name__])[0][:300]


def _check_macros(tree: Any) -> None:
    if _macro_depth(tree) > MAX_MACRO_DEPTH:
        raise CelError(f"more than {MAX_MACRO_DEPTH} of {', '.join(sorted(MACROS))} inside one another")


def _macro_depth(tree: Any) -> int:
    """How many macros stand inside one another; one that goes on from another's result is not inside it."""
    children: list[Any] = getattr(tree, "children", [])
    depths = [_macro_depth(child) for child in children]
    if getattr(tree, "data", "") == "member_dot_arg" and children[1] in MACROS:
        given = len(children[2].children) if len(children) > 2 else 0
        if given != MACROS[children[1]]:
            raise CelError(f"{children[1]} takes {MACROS[children[1]]} arguments, and not {given}")
        if len(children) > 2 and None in bound_names(children[1], children[2].children):
            raise CelError(f"{children[1]} begins with the name of an item, such as x in all(x, x > 0)")
        depths[2:] = [depth + 1 for depth in depths[2:]]
    return max(depths, default=0)
