"""The sandbox of all templates: nothing is computed before a section is rendered, and no single step is endless.

What a template computes in all is limited where it is rendered (`runtime.computing`); that stops Python between two
steps, and not a step of C in which numbers of millions of digits are made. So there are none of these.
"""

import functools
import re
from collections.abc import Callable, Sized
from typing import Any

import jinja2
import jinja2.filters
import jinja2.meta
import jinja2.sandbox
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame

# Of one loop over numbers.
MOST_NUMBERS = 1000
# Of one number, and of a text or list that is repeated; a prompt has fewer characters.
MOST_BITS = 64 * 1024
MOST_REPEATED = 400_000
# To how many digits a number may be rounded.
MOST_DIGITS = 300

# A width or precision of five digits or more, or one that comes from the values.
_WIDE_FORMAT = re.compile(r"%(?:\([^()]*\))?[#0\- +.0-9]*?(?:\*|[0-9]{5})")


class TemplateUnusable(Exception):
    """A text that is no template; the text says why, `line` is 1-based, 0 if unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


# Every run assembles the same few sections: parse each text once.
@functools.lru_cache(maxsize=512)
def variables_of(template: str) -> frozenset[str]:
    """The variables that a template takes from outside, found without computing anything; or TemplateUnusable."""
    environment = template_environment()
    try:
        finder = _VariableFinder(environment)
        finder.visit(environment.parse(template))
    except jinja2.TemplateSyntaxError as failure:
        raise TemplateUnusable(failure.message or "syntax error", failure.lineno) from failure
    except RecursionError as failure:
        raise TemplateUnusable("nested too deeply") from failure
    except Exception as failure:
        # Whatever the library trips over, such as a number of more digits than Python reads.
        raise TemplateUnusable(str(failure)[:200] or type(failure).__name__) from failure
    return frozenset(finder.undeclared_identifiers)


class _NothingAhead(CodeGenerator):
    """Leaves every expression to the rendering, where there is an allowance; jinja2 computes constants at once."""

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if isinstance(node, nodes.TemplateData):
            return super()._output_child_to_const(node, frame, finalize)
        raise nodes.Impossible

    def visit_EvalContextModifier(self, node: nodes.EvalContextModifier, frame: Frame) -> None:  # noqa: N802
        """Take what `{% autoescape %}` is given as not known, which is right whatever it is."""
        for keyword in node.options:
            self.writeline(f"context.eval_ctx.{keyword.key} = ")
            self.visit(keyword.value, frame)
        frame.eval_ctx.volatile = True


class _VariableFinder(_NothingAhead, jinja2.meta.TrackingCodeGenerator):
    """Finds variables as jinja2.meta does."""

    def __init__(self, environment: jinja2.Environment) -> None:
        super().__init__(environment)
        self.optimizer = None


class _Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Looks at the size of a result before it is computed."""

    code_generator_class = _NothingAhead
    intercepted_binops = frozenset({"**", "*", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """As the operator does; ValueError when the result would be too large."""
        _CHECKS[operator](left, right)
        return super().call_binop(context, operator, left, right)


@functools.cache
def template_environment() -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    """The sandbox of all templates: nothing private, no writing, no undefined names, no gaps."""
    environment = _Sandbox(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, optimized=False
    )
    environment.globals["range"] = _numbers
    environment.filters["round"] = _round
    environment.filters["format"] = _format
    # Makes texts by chance: no two runs would be the same.
    del environment.globals["lipsum"]
    return environment


def _numbers(*bounds: int) -> range:
    """Python's range, of MOST_NUMBERS at most."""
    numbers = range(*bounds)
    # The length of a range may be more than a length can be.
    if numbers[MOST_NUMBERS:]:
        raise ValueError(f"a range of more than {MOST_NUMBERS} numbers")
    return numbers


def _round(value: Any, precision: int = 0, method: Any = "common") -> float:
    """jinja2's filter, to MOST_DIGITS at most."""
    if abs(precision) > MOST_DIGITS:
        raise ValueError(f"rounded to more than {MOST_DIGITS} digits")
    return jinja2.filters.do_round(value, precision, method)


def _format(value: str, *args: Any, **kwargs: Any) -> str:
    """jinja2's filter, of no width that is a size of memory."""
    _check_format(value, args)
    return jinja2.filters.do_format(value, *args, **kwargs)


def _check_power(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > MOST_BITS:
        raise ValueError("a number of too many digits")


def _check_product(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > MOST_BITS:
            raise ValueError("a number of too many digits")
        return
    for repeated, times in ((left, right), (right, left)):
        is_too_much = isinstance(repeated, Sized) and isinstance(times, int)
        if is_too_much and len(repeated) * times > MOST_REPEATED:
            raise ValueError(f"repeated to more than {MOST_REPEATED} characters or values")


def _check_format(left: Any, _right: Any) -> None:
    if isinstance(left, str) and _WIDE_FORMAT.search(left):
        raise ValueError("a format that is wider than 9999 characters, or as wide as a value says")


_CHECKS: dict[str, Callable[[Any, Any], None]] = {
    "**": _check_power,
    "*": _check_product,
    "%": _check_format,
}
