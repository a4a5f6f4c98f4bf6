"""What the Harness page says of the agent that is measured: who runs it, within which limits, and who changes that."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evolution.adapters.chat import Role, configured_endpoints, model_name
from evolution.adapters.remotes import read_remote
from evolution.errors import LoopError
from evolution.loop.runners import describe_runner
from evolution.models import Harness
from evolution.states import HarnessKind
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.format.harness import Limits

Facts = list[tuple[str, str]]

_BEFORE_HOST = re.compile(r"//[^/@]*@")


@dataclass(frozen=True)
class AgentPanel:
    """The agent in use and the repository elsewhere, in words; no secret is in it."""

    is_ours: bool
    # Our model's name, or the command line or address of another agent.
    name: str
    facts: Facts
    # The commands that change it, for an operator.
    commands: list[str]
    # Empty where the harness has none.
    remote: str
    # Why the settings of endpoints or of the remote can't be used.
    problems: list[str]


def build_panel(harness: Harness, version: HarnessState | None) -> AgentPanel:
    """The panel for a version, None where it can't be read; never fails for what the settings hold."""
    problems: list[str] = []
    remote = _read_remote(harness, problems)
    commands = [] if harness.kind == HarnessKind.JUDGE else _runner_commands(harness)
    commands += [f"manage.py sync_harness {harness.name} --fetch"] if remote else []
    if harness.runner:
        facts = _runner_facts(harness.runner)
        return AgentPanel(False, describe_runner(harness.runner), facts, commands, remote, problems)
    role = Role.JUDGE if harness.kind == HarnessKind.JUDGE else Role.POLICY
    facts = _endpoint_facts(role, problems) + (_limit_facts(version.limits) if version else [])
    return AgentPanel(True, model_name(role), facts, commands, remote, problems)


def _runner_commands(harness: Harness) -> list[str]:
    start = f"manage.py set_runner {harness.name}"
    if harness.runner:
        return [f"{start} --native"]
    return [f"{start} --command python3 agent.py", f"{start} --http https://agent.example.org/run"]


def _runner_facts(runner: Mapping[str, Any]) -> Facts:
    """The limits that an operator set, and the names of what is passed on: never a value."""
    facts = [(_("time of a run"), _say_seconds(runner["seconds"]))]
    if runner.get("memory_mb"):
        facts.append((_("memory"), _("%(n)d MB for each process") % {"n": runner["memory_mb"]}))
    if runner.get("environment"):
        facts.append((_("variables"), ", ".join(runner["environment"])))
    if runner.get("headers"):
        facts.append((_("headers"), ", ".join(runner["headers"])))
    return facts


def _say_seconds(seconds: float) -> str:
    return ngettext("%(n)g second at most", "%(n)g seconds at most", 1 if seconds == 1 else 2) % {
        "n": seconds
    }


def _limit_facts(limits: Limits) -> Facts:
    facts = [
        (_("turns"), str(limits.turns)),
        (_("tool calls"), str(limits.tool_calls)),
        (_("hook retries"), str(limits.hook_retries)),
        (_("time of a run"), _say_seconds(limits.seconds)),
    ]
    return facts if limits.tokens is None else [*facts, (_("tokens"), str(limits.tokens))]


def _endpoint_facts(role: Role, problems: list[str]) -> Facts:
    try:
        serving = [endpoint.label for endpoint in configured_endpoints() if endpoint.serves(role)]
    except LoopError as failure:
        problems.append(str(failure))
        return []
    return [(_("endpoints"), ", ".join(serving))] if serving else []


def _read_remote(harness: Harness, problems: list[str]) -> str:
    """The address without what stands before the host; "" where no remote is set."""
    remotes = settings.HARNESS_REMOTES
    if not isinstance(remotes, Mapping) or harness.name not in remotes:
        return ""
    try:
        return _BEFORE_HOST.sub("//", read_remote(harness).address)
    except LoopError as failure:
        problems.append(str(failure))
        return ""
