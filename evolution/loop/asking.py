"""Asks a model of the loop and turns what can go wrong into errors that people can act on."""

import asyncio
from typing import TypeVar

from django.utils.translation import gettext as _
from pydantic import BaseModel

from evolution.errors import LoopError, ModelOutputError
from evolution.ports import NamedModel
from evolution.prompts.structured import BadModelOutput, ask
from harness_repo.runtime.chat import ChatError, ChatRequest

Output = TypeVar("Output", bound=BaseModel)


def ask_model(model: NamedModel, request: ChatRequest, output: type[Output]) -> Output:
    """Return the validated answer; raises LoopError, as ModelOutputError when it is of another shape."""
    try:
        answer, _reply = asyncio.run(ask(model.model, request, output))
    except BadModelOutput as failure:
        text = _("%(model)s did not give the JSON it was asked for: %(problem)s")
        raise ModelOutputError(text % {"model": model.name, "problem": failure}) from failure
    except ChatError as failure:
        text = _("%(model)s could not be asked (%(kind)s): %(problem)s")
        raise LoopError(text % {"model": model.name, "kind": failure.kind, "problem": failure}) from failure
    return answer
