"""Edge to the models: which model serves a role. The client of real endpoints is loaded only when one is set."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from django.conf import settings
from django.utils.translation import gettext as _

from evolution.adapters.answer_format import FormatMemory
from evolution.adapters.endpoints import Endpoint, Times, read_endpoints
from evolution.adapters.health import Health
from evolution.adapters.rehearsal.model import RehearsalModel
from evolution.adapters.routing import Route, RoutedChatModel
from evolution.adapters.token_estimates import TokenEstimates
from evolution.errors import LoopError
from evolution.limits.places import Places
from evolution.limits.shares import open_limit
from evolution.ports import NamedModel
from harness_repo.runtime.chat import ChatModel, ChatReply, ChatRequest


class Role(StrEnum):
    """What a model is asked for."""

    POLICY = "policy"
    JUDGE = "judge"
    DIAGNOSER = "diagnoser"
    EDITOR = "editor"
    # the simulated user of a conversation case
    USER = "user"


@dataclass(frozen=True)
class _Known:
    """What this process has learnt of an endpoint."""

    places: Places
    memory: FormatMemory = field(default_factory=FormatMemory)
    # By the model's name there.
    healths: dict[str, Health] = field(default_factory=dict)
    tokens: dict[str, TokenEstimates] = field(default_factory=dict)


# By address and key: what one role learns of a server holds for the others, and for later tasks.
_known: dict[tuple[str, str], _Known] = {}
# The shares of limits are the parent's.
os.register_at_fork(after_in_child=_known.clear)


def build_model(role: str, recorded: str = "") -> NamedModel:
    """Return the model that serves a role, and its name; the rehearsal model when no endpoint is configured.

    With `recorded`, the name that an evaluation is bound to, it is that model whatever the settings say today.
    Raises LoopError when there are endpoints but none for the role, no model name for it, or they can't be read;
    and when no endpoint can be asked for the recorded one.
    """
    role = Role(role)
    endpoints = configured_endpoints()
    if not endpoints:
        if recorded not in ("", rehearsal_name(role)):
            raise _no_longer(role, recorded, rehearsal_name(role))
        return NamedModel(_rehearsal_model(), rehearsal_name(role))
    serving = [endpoint for endpoint in endpoints if endpoint.serves(role)]
    if not serving:
        raise LoopError(_("no endpoint of LLM_ENDPOINTS serves the %(role)s") % {"role": role.value})
    if recorded:
        return NamedModel(_routed(_names_there(role, recorded, serving), recorded), recorded)
    name = _model_name(role, serving)
    return NamedModel(_routed([(one, one.model_for(role) or name) for one in serving], name), name)


def model_name(role: str) -> str:
    """The name of the model that serves a role, "" where the settings don't say; for pages, which must not fail."""
    try:
        endpoints = configured_endpoints()
        serving = [endpoint for endpoint in endpoints if endpoint.serves(role)]
        return _model_name(Role(role), serving) if endpoints else rehearsal_name(role)
    except LoopError:
        return ""


def count_places(role: str) -> int:
    """How many calls may be under way at once at the endpoints of a role; 0 where one of them has no limit."""
    limits = [endpoint.concurrency for endpoint in configured_endpoints() if endpoint.serves(role)]
    return sum(limits) if all(limits) else 0


def rehearsal_name(role: str) -> str:
    """What the rehearsal model is called in a role."""
    return f"rehearsal-{role}"


def configured_endpoints() -> tuple[Endpoint, ...]:
    """The endpoints that the settings name, none for the rehearsal model; LoopError when they can't be read."""
    times = Times(settings.LLM_TIMEOUT_SECONDS, settings.LLM_CONNECT_SECONDS)
    try:
        listed = read_endpoints(settings.LLM_ENDPOINTS, list(Role), times)
    except ValueError as failure:
        raise LoopError(_("LLM_ENDPOINTS can't be used: %(reason)s") % {"reason": failure}) from failure
    if not settings.LLM_BASE_URL and not settings.LLM_API_KEY:
        return listed
    one = Endpoint(
        settings.LLM_BASE_URL,
        settings.LLM_API_KEY,
        concurrency=settings.LLM_CONCURRENCY,
        requests_per_minute=settings.LLM_REQUESTS_PER_MINUTE,
        tokens_per_minute=settings.LLM_TOKENS_PER_MINUTE,
        seed=settings.LLM_SEED,
        seconds=times.call,
        connect_seconds=times.connect,
    )
    return (one, *listed)


def _model_name(role: Role, endpoints: Sequence[Endpoint]) -> str:
    """The name that stands for the role's model everywhere, whatever each endpoint calls it."""
    setting = f"LLM_MODEL_{role.upper()}"
    values = {"role": role.value, "setting": setting}
    named: str = getattr(settings, setting)
    if named:
        return named
    names = {endpoint.model_for(role) for endpoint in endpoints}
    if len(names) > 1:
        # One name has to stand for one model: figures are compared by it.
        text = _(
            "the endpoints call the model of the %(role)s by different names: set LLM_MODEL or %(setting)s to the one "
            "name that figures are recorded and compared under"
        )
        raise LoopError(text % values)
    if not any(names):
        raise LoopError(_("no model is set for the %(role)s: set LLM_MODEL or %(setting)s") % values)
    return names.pop()


def _names_there(role: Role, recorded: str, endpoints: Sequence[Endpoint]) -> list[tuple[Endpoint, str]]:
    """The endpoints that can be asked for a recorded model, with its name there; LoopError when there is none.

    One that has a model of its own for the role is asked for that only while the role's name is the recorded one.
    """
    try:
        current = _model_name(role, endpoints)
    # It may be unset by now; endpoints that serve any model by name need no setting.
    except LoopError:
        current = ""
    if recorded == current:
        return [(endpoint, endpoint.model_for(role) or recorded) for endpoint in endpoints]
    able = [(endpoint, recorded) for endpoint in endpoints if endpoint.model_for(role) in ("", recorded)]
    if not able or recorded == rehearsal_name(role):
        raise _no_longer(role, recorded, current)
    return able


def _no_longer(role: Role, recorded: str, current: str) -> LoopError:
    values = {"role": role.value, "recorded": recorded, "current": current or "-"}
    text = _(
        "%(recorded)s is not configured for the %(role)s any more (it is %(current)s now): "
        "configure it again, or start a new evaluation"
    )
    return LoopError(text % values)


def _routed(endpoints: Sequence[tuple[Endpoint, str]], stands_for: str) -> ChatModel:
    # The client takes half a second to import, and most processes never call a model.
    from evolution.adapters.openai_chat import OpenAIChatModel  # noqa: PLC0415

    routes = []
    for endpoint, name in endpoints:
        known = _know(endpoint)
        health = known.healths.setdefault(name, Health(f"{endpoint.label} ({name})", known.places))
        tokens = known.tokens.setdefault(name, TokenEstimates())
        routes.append(Route(OpenAIChatModel(endpoint, known.memory), health, name, stands_for, tokens))
    return RoutedChatModel(
        routes, max_retries=settings.LLM_MAX_RETRIES, most_wait=settings.LLM_MAX_WAIT_SECONDS
    )


def _know(endpoint: Endpoint) -> _Known:
    identity = endpoint.base_url, endpoint.api_key
    places = open_limit(
        limit_name(endpoint),
        endpoint.concurrency,
        requests_per_minute=endpoint.requests_per_minute,
        tokens_per_minute=endpoint.tokens_per_minute,
        longest=endpoint.seconds,
    )
    return _known.setdefault(identity, _Known(places))


def limit_name(endpoint: Endpoint) -> str:
    """What an endpoint's limit is called in all processes; tells nothing of its key."""
    identity = f"{endpoint.base_url}\n{endpoint.api_key}".encode()
    return f"endpoint:{hashlib.blake2b(identity, digest_size=16).hexdigest()}"


def warm_up() -> None:
    """Load what calls need, where there is an endpoint to call: half a second that the first call need not wait for."""
    if configured_endpoints():
        from evolution.adapters.openai_chat import OpenAIChatModel  # noqa: F401, PLC0415


def _rehearsal_model() -> ChatModel:
    delay = settings.REHEARSAL_DELAY_SECONDS
    return SlowModel(RehearsalModel(), delay) if delay else RehearsalModel()


class SlowModel:
    """A model that takes its time before it answers; for rehearsing what happens during a long evaluation."""

    def __init__(self, model: ChatModel, seconds: float) -> None:
        self._model = model
        self._seconds = seconds
        # As it answers nothing else.
        self.identity: str = getattr(model, "identity", "")

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Wait, then answer as the model does."""
        await asyncio.sleep(self._seconds)
        return await self._model.complete(request)
