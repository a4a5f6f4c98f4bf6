from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from evolution.adapters.tool_access import build_tool_access
from harness_repo.runtime.access import NO_ACCESS


def test_nothing_is_granted_by_default() -> None:
    assert build_tool_access() == NO_ACCESS


def test_grants_are_read_from_the_settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "from-env")
    settings.TOOL_HOSTS = ["Shop.Example.com", "http://10.0.0.5:8080"]
    settings.TOOL_COMMANDS = ["npx -y 'a server'", ["python", "-m", "server"]]
    settings.TOOL_SECRETS = {
        "SHOP": {"env": "SHOP_TOKEN", "hosts": ["shop.example.com"]},
        "OTHER": {"value": "plain", "hosts": []},
    }
    access = build_tool_access()
    assert access.hosts == {"https://shop.example.com:443", "http://10.0.0.5:8080"}
    assert access.commands == {("npx", "-y", "a server"), ("python", "-m", "server")}
    assert {name: (secret.value, set(secret.hosts)) for name, secret in access.secrets.items()} == {
        "SHOP": ("from-env", {"https://shop.example.com:443"}),
        "OTHER": ("plain", set()),
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TOOL_HOSTS", ["*.example.com"], r"TOOL_HOSTS .*'\*.example.com'"),
        ("TOOL_HOSTS", ["ftp://x"], "TOOL_HOSTS .*'ftp://x' is not a host"),
        ("TOOL_HOSTS", ["https://x/path"], "TOOL_HOSTS .*more or less than a host"),
        ("TOOL_COMMANDS", "npx", "TOOL_COMMANDS .*a JSON list"),
        ("TOOL_COMMANDS", ["a 'b"], "TOOL_COMMANDS .*No closing quotation"),
        ("TOOL_COMMANDS", [[]], "TOOL_COMMANDS .*is no command line"),
        ("TOOL_COMMANDS", [["a", 1]], "TOOL_COMMANDS .*is no command line"),
        ("TOOL_SECRETS", [], "TOOL_SECRETS .*write"),
        ("TOOL_SECRETS", {"A": "hunter2"}, "TOOL_SECRETS .*A: hosts is missing"),
        ("TOOL_SECRETS", {"A": {"hosts": []}}, "A: one of value and env"),
        ("TOOL_SECRETS", {"A": {"value": "hunter2\n", "hosts": []}}, "A: a secret has to be"),
        ("TOOL_SECRETS", {"A": {"value": 1, "hosts": []}}, "A: the value is not a text"),
        ("TOOL_SECRETS", {"A": {"env": "NOT_SET_ANYWHERE", "hosts": []}}, "NOT_SET_ANYWHERE is not set"),
        (
            "TOOL_SECRETS",
            {"A": {"value": "hunter2", "hosts": ["a b"]}},
            "A: 'a b' is more or less than a host",
        ),
    ],
)
def test_what_cannot_be_read_is_said_with_its_setting(
    settings: Settings, name: str, value: Any, message: str
) -> None:
    setattr(settings, name, value)
    with pytest.raises(ImproperlyConfigured, match=message) as failure:
        build_tool_access()
    assert "hunter2" not in str(failure.value)
