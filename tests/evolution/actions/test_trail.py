"""Every action asks for a role and leaves its trace: read from the sources, so that no new one is forgotten."""

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import evolution
from evolution import actions

# What writes the audit trail, and the one writer of jobs, whose states are in it.
WRITERS = {"record", "move", "move_all", "create_job"}
# Uploads wait for a person; the trail begins when they are started, or thrown away.
SILENT = {"imports.stage_uploads"}


def read_calls(*folders: str) -> dict[str, set[str]]:
    """Function -> the names that it calls, over all files; functions of one name are taken together."""
    calls: dict[str, set[str]] = {}
    for path in (path for folder in folders for path in (Path(evolution.__path__[0]) / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                calls.setdefault(node.name, set()).update(_called(node))
    return calls


def _called(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


CALLS = read_calls("actions", "loop")


def reached(name: str) -> set[str]:
    """All that a function calls, however far away."""
    found, waiting = {name}, [name]
    while waiting:
        for called in CALLS.get(waiting.pop(), set()) - found:
            found.add(called)
            waiting.append(called)
    return found


def list_actions() -> list[str]:
    """The public functions of the package whose first argument is an actor, as module.function."""
    found = []
    for module in pkgutil.iter_modules(actions.__path__, f"{actions.__name__}."):
        for name, function in inspect.getmembers(import_module(module.name), inspect.isfunction):
            first = next(iter(inspect.signature(function).parameters), "")
            if function.__module__ == module.name and first == "actor" and not name.startswith("_"):
                found.append(f"{module.name.rpartition('.')[2]}.{name}")
    return found


def test_the_actions_are_found() -> None:
    assert {"steps.start_step", "people.set_role", "branches.take_theirs"} <= set(list_actions())


@pytest.mark.parametrize("action", list_actions())
def test_an_action_asks_for_a_role_and_leaves_an_event(action: str) -> None:
    called = reached(action.partition(".")[2])
    assert "require" in called
    assert called & WRITERS or action in SILENT
