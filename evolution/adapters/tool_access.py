"""What the installation's settings let the tools of harnesses reach; see TOOL_HOSTS, TOOL_COMMANDS, TOOL_SECRETS."""

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from harness_repo.runtime.access import Secret, ToolAccess

_FORM = '{"NAME": {"value": "..." or "env": "VARIABLE", "hosts": ["HOST", ...]}}'


def build_tool_access() -> ToolAccess:
    """The operator's grants to tools. ImproperlyConfigured names the setting that cannot be read, never a secret."""
    try:
        hosts = ToolAccess(hosts=frozenset(settings.TOOL_HOSTS)).hosts
    except ValueError as failure:
        raise ImproperlyConfigured(f"TOOL_HOSTS can't be read: {failure}") from None
    return ToolAccess(
        hosts, frozenset(_commands(settings.TOOL_COMMANDS)), dict(_secrets(settings.TOOL_SECRETS))
    )


def _commands(commands: object) -> Iterator[tuple[str, ...]]:
    """Each command line is a list of words, or one text that is split as a shell would."""
    if not isinstance(commands, list):
        raise ImproperlyConfigured("TOOL_COMMANDS can't be read: write a JSON list of command lines")
    for command in commands:
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError as failure:
            raise ImproperlyConfigured(f"TOOL_COMMANDS can't be read: {command!r}: {failure}") from None
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise ImproperlyConfigured(f"TOOL_COMMANDS can't be read: {command!r} is no command line")
        yield tuple(words)


def _secrets(secrets: object) -> Iterator[tuple[str, Secret]]:
    if not isinstance(secrets, Mapping):
        raise ImproperlyConfigured(f"TOOL_SECRETS can't be read: write {_FORM}")
    for name, entry in secrets.items():
        try:
            yield name, _secret(entry)
        except (ValueError, KeyError, TypeError) as failure:
            # A KeyError's text is a name alone, and no other one here has a value in it.
            message = f"TOOL_SECRETS can't be read: {name}: {failure}; write {_FORM}"
            raise ImproperlyConfigured(message) from None


def _secret(entry: Any) -> Secret:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("hosts"), list):
        raise ValueError("hosts is missing")
    if ("env" in entry) == ("value" in entry):
        raise ValueError("one of value and env is needed")
    if "env" in entry and entry["env"] not in os.environ:
        raise ValueError(f"the variable {entry['env']} is not set")
    value = os.environ[entry["env"]] if "env" in entry else entry["value"]
    if not isinstance(value, str):
        raise ValueError("the value is not a text")
    return Secret(value, frozenset(entry["hosts"]))
