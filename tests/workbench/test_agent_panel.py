from typing import Any

import pytest
from pytest_django import Settings

from evolution.models import Harness
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.format.harness import read_harness
from tests.evolution.measured import AGENT
from workbench.agent_panel import build_panel

HTTP = {
    "kind": "http", "url": "https://agent.example.org/run", "seconds": 9.0,
    "headers": {"Authorization": "Bearer ${secret:TEAM}"},
}  # fmt: skip
COMMAND = {
    "kind": "command",
    "command": ["python3", "a b.py"],
    "seconds": 1.5,
    "memory_mb": 64,
    "environment": ["HOME"],
}


def make(runner: dict[str, Any] | None = None, kind: str = "agent") -> Harness:
    return Harness(name="shop", kind=kind, runner=runner or {})


def version(limits: bytes = b"") -> HarnessState:
    return read_harness({**AGENT, "harness.yaml": AGENT["harness.yaml"] + limits})


def test_our_runtime_shows_its_model_and_limits() -> None:
    panel = build_panel(make(), version(b"limits: {turns: 5, tokens: 900}\n"))

    assert (panel.is_ours, panel.name) == (True, "rehearsal-policy")
    assert {("turns", "5"), ("tokens", "900")} <= set(panel.facts)
    assert panel.commands[0].startswith("manage.py set_runner shop --command")


def test_another_agent_shows_its_command_and_what_an_operator_allowed() -> None:
    panel = build_panel(make(COMMAND), version())

    assert (panel.is_ours, panel.name) == (False, "python3 'a b.py'")
    assert panel.facts == [
        ("time of a run", "1.5 seconds at most"),
        ("memory", "64 MB for each process"),
        ("variables", "HOME"),
    ]
    assert panel.commands == ["manage.py set_runner shop --native"]


def test_headers_are_named_without_their_values() -> None:
    assert "Bearer" not in str(build_panel(make(HTTP), None))
    assert ("headers", "Authorization") in build_panel(make(HTTP), None).facts


def test_a_judge_has_no_runner_to_set() -> None:
    panel = build_panel(make(kind="judge"), None)

    assert (panel.name, panel.commands) == ("rehearsal-judge", [])


def test_the_remote_is_shown_without_who_signs_in(settings: Settings) -> None:
    settings.HARNESS_REMOTES = {"shop": {"url": "https://ghp_secret@git.example.org/shop.git"}}
    panel = build_panel(make(), None)

    assert "ghp_secret" not in str(panel)
    assert panel.remote == "https://git.example.org/shop.git" or panel.problems
    assert not panel.remote or panel.commands[-1] == "manage.py sync_harness shop --fetch"


@pytest.mark.parametrize("remotes", [{"shop": 3}, {"shop": {"url": "ext::sh -c x"}}])
def test_a_setting_that_cannot_be_used_is_told(settings: Settings, remotes: dict[str, Any]) -> None:
    settings.HARNESS_REMOTES = remotes

    assert "HARNESS_REMOTES" in build_panel(make(), None).problems[0]


def test_endpoints_are_named_and_their_keys_are_not(settings: Settings) -> None:
    settings.LLM_ENDPOINTS = [
        {"base_url": "http://one.example.org/v1", "api_key": "sk-1", "model": "m"},
        {"base_url": "http://two.example.org/v1", "roles": ["judge"], "model": "m"},
    ]
    panel = build_panel(make(), None)

    assert ("endpoints", "one.example.org") in panel.facts
    assert "sk-1" not in str(panel)
