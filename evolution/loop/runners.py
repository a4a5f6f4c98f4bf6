"""Inside an evaluation: which agent is measured, our runtime or one that an operator has set for the harness.

The choice stands on the harness's row and never in its files: a model edits those.
"""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from evolution.errors import LoopError
from evolution.loop.repositories import open_repository, read_version
from evolution.loop.stored_answers import StoredAnswers
from evolution.models import Evaluation, Harness
from evolution.ports import NamedModel
from harness_repo.git.repository import MAIN
from harness_repo.runtime.access import NO_ACCESS, AccessDenied, ToolAccess, origin_of
from harness_repo.runtime.command_runner import CommandRunner, CommandSettings
from harness_repo.runtime.http_runner import SHORTEST_SECRET, HttpRunner, HttpSettings
from harness_repo.runtime.native import NativeRunner
from harness_repo.runtime.runner import Runner

# What stands for our runtime on harnesses and evaluations.
NATIVE: dict[str, Any] = {}
# Of one run; a task that gives way, and waits for the runs that are under way, has to end within Celery's limit.
MOST_SECONDS = 600.0

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# As in RFC 9110; the value is printable and may name secrets as ${secret:NAME}.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CREDENTIAL = re.compile(r"auth|cookie|key|token|secret|passw|credential", re.IGNORECASE)

Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]


class _Choice(BaseModel):
    model_config = ConfigDict(extra="forbid")

    seconds: Seconds = 120.0


class _Command(_Choice):
    kind: Literal["command"]
    command: list[Text] = Field(min_length=1, max_length=100)
    memory_mb: int = Field(default=2048, ge=64, le=1_000_000)
    # names of variables that are passed on
    environment: list[Text] = []


class _Http(_Choice):
    kind: Literal["http"]
    url: Text
    headers: dict[str, str] = {}


_CHOICES: TypeAdapter[_Command | _Http] = TypeAdapter(
    Annotated[_Command | _Http, Field(discriminator="kind")]
)


def check_runner(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The choice with every field written out, {} for our runtime; LoopError names the field that is wrong.

    {"kind": "command", "command": [...], "seconds"?, "memory_mb"?, "environment"?: [names]} or
    {"kind": "http", "url": ..., "seconds"?, "headers"?: {name: text with ${secret:NAME}}}.
    """
    if not stored:
        return dict(NATIVE)
    choice = _read(stored)
    wrong = _wrong_command(choice) if isinstance(choice, _Command) else _wrong_http(choice)
    if wrong:
        raise LoopError(wrong)
    return choice.model_dump()


def check_secrets(runner: Mapping[str, Any], access: ToolAccess) -> None:
    """Raise LoopError when a header names a secret that is not there, or that may not go to the endpoint."""
    choice = _read(runner) if runner else None
    if isinstance(choice, _Http):
        _fill_headers(choice, access)


def doubts_about_command(runner: Mapping[str, Any], harness: Harness) -> str:
    """Why the command may not start, "" where nothing speaks against it; workers may yet find it."""
    if not runner or runner["kind"] != "command":
        return ""
    program = PurePosixPath(runner["command"][0])
    if program.is_absolute() or "/" not in runner["command"][0]:
        is_there = shutil.which(program) is not None
    else:
        is_there = str(program) in open_repository(harness).snapshot(MAIN).files
    text = _("%(command)s is found neither among the programs here nor in the files of main")
    return "" if is_there else text % {"command": program}


def describe_runner(runner: Mapping[str, Any]) -> str:
    """The agent's name where a model's would stand: its command line or address, "" for our runtime."""
    if not runner:
        return ""
    return shlex.join(runner["command"]) if runner["kind"] == "command" else str(runner["url"])


def detail_runner(runner: Mapping[str, Any]) -> str:
    """The same with all that can make a difference; "native" for our runtime."""
    if not runner:
        return "native"
    rest = {name: value for name, value in runner.items() if name not in ("kind", "command", "url") and value}
    return f"{describe_runner(runner)} ({', '.join(f'{name}: {value}' for name, value in rest.items())})"


# Read by models and by people who look at a trajectory.
FIXTURES_ONLY = ToolAccess(
    refusal="in this evaluation tools answer from the case's fixtures alone, and the case has none for this tool "
    "(an operator lets tools go out with EVALUATION_LIVE_TOOLS)"
)


def reaches_the_world(runner: Mapping[str, Any]) -> bool:
    """Whether tools of evaluations that start now reach the world; those of other agents are their own."""
    return not runner and bool(settings.EVALUATION_LIVE_TOOLS)


def build_runner(evaluation: Evaluation, policy: NamedModel | None, access: ToolAccess = NO_ACCESS) -> Runner:
    """The agent of an evaluation, at its commit. `policy` drives our runtime; other agents need none.

    Tools answer from fixtures alone unless EVALUATION_LIVE_TOOLS was set when it was started, and still is; the
    secrets of `access` fill headers in any case. Where answers are judged anew, they stand in for an agent. Raises
    LoopError, and what reading the version raises.
    """
    if evaluation.answers_from_id is not None:
        model = "" if evaluation.runner else evaluation.model
        return StoredAnswers(evaluation.answers_from_id, model, evaluation.user_model)
    if not evaluation.runner:
        return _build_native(evaluation, policy, access)
    choice = _read(evaluation.runner)
    if isinstance(choice, _Http):
        headers = _fill_headers(choice, access)
        secrets = [*access.secrets_of({"headers": choice.headers}), *_credentials(headers)]
        return HttpRunner(HttpSettings(choice.url, choice.seconds, headers, secrets))
    command = CommandSettings(
        tuple(choice.command), choice.seconds, choice.memory_mb, tuple(choice.environment)
    )
    return CommandRunner(command, open_repository(evaluation.harness).snapshot)


def _build_native(evaluation: Evaluation, policy: NamedModel | None, access: ToolAccess) -> Runner:
    if policy is None:
        raise LoopError(_("%(evaluation)s needs a model for the policy") % {"evaluation": evaluation})
    if evaluation.live_tools and not settings.EVALUATION_LIVE_TOOLS:
        text = _(
            "%(evaluation)s was started with tools that reach the world, and EVALUATION_LIVE_TOOLS is off now"
        )
        raise LoopError(text % {"evaluation": evaluation})
    harness = read_version(evaluation.harness, evaluation.commit)
    reach = access if evaluation.live_tools else FIXTURES_ONLY
    return NativeRunner(harness, policy.model, evaluation.model, reach)


def _read(stored: Mapping[str, Any]) -> _Command | _Http:
    try:
        return _CHOICES.validate_python(dict(stored))
    except ValidationError as failure:
        first = failure.errors(include_url=False, include_input=False)[0]
        # The first part is the kind that was chosen.
        field = ".".join(map(str, first["loc"][1:])) or "kind"
        values = {"field": field, "problem": first["msg"]}
        raise LoopError(_("the runner can't be used: %(field)s: %(problem)s") % values) from None


def _wrong_command(choice: _Command) -> str:
    if any("\0" in part for part in choice.command):
        return _("the command holds a NUL character")
    bad = [name for name in choice.environment if not _VARIABLE.fullmatch(name)]
    return _("%(name)s is no name of a variable; give names without values") % {"name": bad[0]} if bad else ""


def _wrong_http(choice: _Http) -> str:
    try:
        origin_of(choice.url)
    except AccessDenied:
        return _("%(url)s is not an http or https address without a password") % {"url": choice.url}
    bad = [
        name
        for name, value in choice.headers.items()
        if not (_HEADER.fullmatch(name) and value.isascii() and value.isprintable())
    ]
    return _("%(name)s can't be sent as a header") % {"name": bad[0]} if bad else ""


def _credentials(headers: Mapping[str, str]) -> list[str]:
    """What stands in headers that are there for it, whole and word by word; nobody wants that in a result."""
    values = [value for name, value in headers.items() if _CREDENTIAL.search(name)]
    return [*values, *(word for value in values for word in value.split() if len(word) >= SHORTEST_SECRET)]


def _fill_headers(choice: _Http, access: ToolAccess) -> dict[str, str]:
    try:
        return access.fill_headers(choice.headers, choice.url)
    except AccessDenied as failure:
        raise LoopError(_("the agent can't be asked: %(problem)s") % {"problem": failure}) from None
