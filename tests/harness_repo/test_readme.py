"""The reference of the format names every code that a reader can report."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2] / "harness_repo"


def codes_in(source: str) -> set[str]:
    """The third arguments of error(...) and warning(...)."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    reports = (
        call for call in calls if isinstance(call.func, ast.Name) and call.func.id in {"error", "warning"}
    )
    codes = (call.args[2] for call in reports if len(call.args) > 2)
    return {str(code.value) for code in codes if isinstance(code, ast.Constant)}


def test_every_code_is_documented() -> None:
    documented = set(re.findall(r"`([a-z_]+)`", (ROOT / "README.md").read_text("utf-8")))
    reported = {code for path in ROOT.rglob("*.py") for code in codes_in(path.read_text("utf-8"))}
    assert len(reported) > 40
    assert reported - documented == set()
