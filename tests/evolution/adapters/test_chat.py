import pytest
from pytest_django import Settings

from evolution.adapters.chat import SlowModel, build_model
from evolution.adapters.openai_chat import OpenAIChatModel
from evolution.adapters.rehearsal.model import RehearsalModel
from evolution.errors import LoopError


def test_rehearsal_serves_every_role_by_default() -> None:
    model, name = build_model("judge")
    assert isinstance(model, RehearsalModel)
    assert name == "rehearsal-judge"


def test_endpoint_serves_a_role_under_its_own_model_name(settings: Settings) -> None:
    settings.LLM_BASE_URL = "http://127.0.0.1:9/v1"
    settings.LLM_MODEL_JUDGE = "grader"
    model, name = build_model("judge")
    assert isinstance(model, OpenAIChatModel)
    assert name == "grader"
    with pytest.raises(LoopError, match="LLM_MODEL_EDITOR"):
        build_model("editor")


def test_rehearsal_can_be_slowed_down(settings: Settings) -> None:
    settings.REHEARSAL_DELAY_SECONDS = 0.01
    assert isinstance(build_model("policy").model, SlowModel)
