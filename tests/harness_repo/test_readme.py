"""The reference of the format names every code that a reader can report."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "harness_repo"
REPORTS = {"error", "warning"}


def reports_in(source: str) -> Iterator[ast.Call]:
    """The calls of error(...) and warning(...)."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return (call for call in calls if isinstance(call.func, ast.Name) and call.func.id in REPORTS)


def codes_in(source: str) -> set[str]:
    """Their third arguments; those that are no plain text as they are written."""
    codes = (call.args[2] for call in reports_in(source) if len(call.args) > 2)
    return {
        code.value if isinstance(code, ast.Constant) and isinstance(code.value, str) else ast.unparse(code)
        for code in codes
    }


def test_every_code_is_plain_and_documented() -> None:
    documented = set(re.findall(r"`([a-z_]+)`", (ROOT / "README.md").read_text("utf-8")))
    reported = {code for path in ROOT.rglob("*.py") for code in codes_in(path.read_text("utf-8"))}
    assert len(reported) > 40
    assert reported - documented == set()


def test_a_code_that_is_put_together_is_seen() -> None:
    assert codes_in("error(path, 1, f'tool_{key}', 'm')") == {"f'tool_{key}'"}
