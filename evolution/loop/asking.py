"""Asks a model of the loop, keeps what was asked and answered, and turns what can go wrong into errors for people."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import BaseModel

from evolution.actors import Actor
from evolution.errors import LoopError, ModelOutputError
from evolution.loop.prices import cost_of
from evolution.models import Cluster, Exchange, Harness, Job, Proposal
from evolution.ports import NamedModel
from evolution.prompts.structured import BadModelOutput, Try, ask
from evolution.states import ExchangePurpose
from harness_repo.runtime.chat import ChatError, ChatRequest
from harness_repo.runtime.storable import make_storable

Output = TypeVar("Output", bound=BaseModel)


@dataclass(frozen=True)
class About:
    """What a question is for; kept with it."""

    actor: Actor
    harness: Harness
    purpose: ExchangePurpose
    cluster: Cluster | None = None
    proposal: Proposal | None = None
    job: Job | None = None
    # see models.Exchange
    shown: Mapping[str, Any] = field(default_factory=dict)


def consult(
    model: NamedModel,
    request: ChatRequest,
    output: type[Output],
    about: About,
    check: Callable[[Output], str] | None = None,
) -> tuple[Output, Exchange]:
    """Return the validated answer, and the record of how it came about.

    `check` says what is wrong with an answer of the right shape; there is one repair round for everything together.
    Raises LoopError, as ModelOutputError when the answer is of no use after it; the exchange is kept then too, so not
    in a transaction of the caller's.
    """
    tries: list[Try] = []
    began = time.monotonic()
    try:
        answer = _ask(model, request, output, check, tries)
    except LoopError as failure:
        _keep(about, model, request, tries=tries, began=began, error=str(failure))
        raise
    return answer, _keep(about, model, request, tries=tries, began=began)


def ask_model(model: NamedModel, request: ChatRequest, output: type[Output]) -> Output:
    """Return the validated answer, keeping nothing; raises as `consult` does."""
    return _ask(model, request, output, None, [])


def _ask(
    model: NamedModel,
    request: ChatRequest,
    output: type[Output],
    check: Callable[[Output], str] | None,
    tries: list[Try],
) -> Output:
    try:
        answer, _reply = asyncio.run(ask(model.model, request, output, check=check, tries=tries))
    except BadModelOutput as failure:
        text = _("%(model)s did not give the JSON it was asked for: %(problem)s")
        raise ModelOutputError(text % {"model": model.name, "problem": failure}) from failure
    except ChatError as failure:
        text = _("%(model)s could not be asked (%(kind)s): %(problem)s")
        raise LoopError(text % {"model": model.name, "kind": failure.kind, "problem": failure}) from failure
    return answer


def _keep(
    about: About,
    model: NamedModel,
    request: ChatRequest,
    *,
    tries: list[Try],
    began: float,
    error: str = "",
) -> Exchange:
    usages = [each.reply.usage for each in tries]
    return Exchange.objects.create(
        harness=about.harness,
        purpose=about.purpose,
        cluster=about.cluster,
        proposal=about.proposal,
        job=about.job,
        model=model.name[:200],
        request=make_storable(
            {
                "messages": request.messages,
                "response_schema": request.response_schema,
                "parameters": request.parameters,
            }
        ),
        replies=make_storable([_describe(each) for each in tries]),
        shown=make_storable(dict(about.shown)),
        error=make_storable(error),
        prompt_tokens=sum(max(0, usage.prompt_tokens) for usage in usages),
        completion_tokens=sum(max(0, usage.completion_tokens) for usage in usages),
        cached_tokens=sum(max(0, usage.cached_tokens) for usage in usages),
        cost=_add_costs(model.name, tries),
        currency=settings.MODEL_CURRENCY,
        seconds=round(time.monotonic() - began, 3),
        created_by=about.actor.name,
    )


def _describe(each: Try) -> dict[str, Any]:
    reply = each.reply
    return {
        "content": reply.content or "",
        "finish_reason": reply.finish_reason,
        "model": reply.model,
        "prompt_tokens": reply.usage.prompt_tokens,
        "completion_tokens": reply.usage.completion_tokens,
        "latency_ms": reply.latency_ms,
        "problem": each.problem,
    }


def _add_costs(model: str, tries: list[Try]) -> Decimal | None:
    """What all replies cost together; None where that of one is unknown."""
    total = Decimal(0)
    for each in tries:
        usage = each.reply.usage
        cost = cost_of(model, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
        if cost is None:
            return None
        total += cost
    return total
