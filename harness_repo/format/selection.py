"""JMESPath, by which a tool takes its result out of a larger answer; {name} stands for an argument of the call."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

# Of an expression with its arguments; the schema of a tool file allows far less before they stand in it.
MOST_CHARACTERS = 100_000

# Texts are passed over whole: what looks like a placeholder inside one is text. One that is not closed goes to the end,
# or each of its quotes would be looked at anew.
_TOKEN = re.compile(
    r"""'(?:\\.|[^'\\])*+(?:'|\\?\Z)|"(?:\\.|[^"\\])*+(?:"|\\?\Z)|`(?P<literal>(?:\\.|[^`\\])*+)(?:`|\\?\Z)"""
    r"""|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}""",
    re.DOTALL,
)


class SelectionError(Exception):
    """An expression that is broken, or that cannot be applied; the text says why."""


def check_selection(source: str) -> None:
    """Raise SelectionError when the expression cannot be compiled."""
    _compile(_with_arguments(source, {}))


def selection_names(source: str) -> Iterator[str]:
    """The arguments that an expression names."""
    return (found["name"] for found in _TOKEN.finditer(source) if found["name"])


def select(source: str, data: object, arguments: Mapping[str, Any]) -> object:
    """What the expression finds in JSON data, None for nothing. Raises SelectionError.

    How long this takes is up to the expression: call it under an allowance.
    """
    compiled = _compile(_with_arguments(source, arguments))
    try:
        result = compiled.search(data)
        # A reference to an expression (&name) is the one result that is no JSON value.
        json.dumps(result)
    except (JMESPathError, ArithmeticError, TypeError, ValueError, RecursionError) as failure:
        raise SelectionError(_first_line(failure)) from failure
    return result


def _compile(source: str) -> Any:
    if len(source) > MOST_CHARACTERS:
        raise SelectionError("the expression, or an argument in it, is too long")
    _check_literals(source)
    try:
        return jmespath.compile(source)
    except RecursionError:
        raise SelectionError("nested too deeply") from None
    except ValueError as failure:
        # The library's errors are of this kind; so is a number of more digits than Python reads.
        raise SelectionError(_first_line(failure)) from failure


def _check_literals(source: str) -> None:
    """Refuse literals that are not JSON: the library takes them for texts, with a warning that this will end."""
    for found in _TOKEN.finditer(source):
        literal = found["literal"]
        try:
            json.loads(literal.replace("\\`", "`") if literal is not None else "null")
        except (ValueError, RecursionError):
            raise SelectionError(f"the literal `{literal[:50]}` is not JSON") from None


def _with_arguments(source: str, arguments: Mapping[str, Any]) -> str:
    """The expression with every placeholder as a literal; an argument that is not given is null."""

    def literal(found: re.Match[str]) -> str:
        name = found["name"]
        return found.group() if name is None else f"`{_literal(arguments.get(name))}`"

    return _TOKEN.sub(literal, source)


def _literal(value: object) -> str:
    # A backtick would end the literal; written as an escape it stands in a JSON text all the same.
    return json.dumps(value).replace("`", "\\u0060")


def _first_line(failure: Exception) -> str:
    return (str(failure).splitlines() or [type(failure).__name__])[0][:300]
