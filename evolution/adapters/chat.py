"""Edge to the models: which model serves a role. The client of real endpoints is loaded only when one is set."""

import asyncio
from enum import StrEnum

from django.conf import settings
from django.utils.translation import gettext as _

from evolution.adapters.rehearsal.model import RehearsalModel
from evolution.errors import LoopError
from evolution.ports import NamedModel
from harness_repo.runtime.chat import ChatModel, ChatReply, ChatRequest


class Role(StrEnum):
    """What a model is asked for."""

    POLICY = "policy"
    JUDGE = "judge"
    DIAGNOSER = "diagnoser"
    EDITOR = "editor"


def build_model(role: str) -> NamedModel:
    """Return the model that serves a role, and its name; the rehearsal model when no endpoint is configured.

    Raises LoopError when there is an endpoint but no model name for the role.
    """
    role = Role(role)
    if not settings.LLM_BASE_URL and not settings.LLM_API_KEY:
        return NamedModel(_rehearsal_model(), f"rehearsal-{role}")
    name = getattr(settings, f"LLM_MODEL_{role.upper()}")
    if not name:
        values = {"role": role.value, "setting": f"LLM_MODEL_{role.upper()}"}
        raise LoopError(_("no model is set for the %(role)s: set LLM_MODEL or %(setting)s") % values)
    return NamedModel(_endpoint(), name)


def _endpoint() -> ChatModel:
    # The client takes half a second to import, and most processes never call a model.
    from evolution.adapters.openai_chat import OpenAIChatModel  # noqa: PLC0415

    return OpenAIChatModel(
        settings.LLM_BASE_URL,
        settings.LLM_API_KEY,
        seconds=settings.LLM_TIMEOUT_SECONDS,
        max_retries=settings.LLM_MAX_RETRIES,
    )


def _rehearsal_model() -> ChatModel:
    delay = settings.REHEARSAL_DELAY_SECONDS
    return SlowModel(RehearsalModel(), delay) if delay else RehearsalModel()


class SlowModel:
    """A model that takes its time before it answers; for rehearsing what happens during a long evaluation."""

    def __init__(self, model: ChatModel, seconds: float) -> None:
        self._model = model
        self._seconds = seconds

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Wait, then answer as the model does."""
        await asyncio.sleep(self._seconds)
        return await self._model.complete(request)
