import pytest
from pytest_django import Settings

from evolution.adapters.model_choice import ModelChoice, check_model, list_models
from evolution.errors import LoopError


def test_without_an_endpoint_only_the_rehearsal_model_can_be_asked() -> None:
    assert list_models("editor") == ModelChoice(("rehearsal-editor",))
    check_model("editor", "")
    with pytest.raises(LoopError, match="rehearsal-editor"):
        check_model("editor", "large")


def test_an_endpoint_with_a_model_of_its_own_is_asked_for_that(settings: Settings) -> None:
    settings.LLM_ENDPOINTS = [{"base_url": "http://a/v1", "model": {"editor": "large"}, "roles": ["editor"]}]
    settings.LLM_MODEL_EDITOR = "small"

    assert list_models("editor") == ModelChoice(("small", "large"))
    check_model("editor", "large")
    with pytest.raises(LoopError):
        check_model("editor", "huge")


def test_an_endpoint_without_one_is_asked_for_any(settings: Settings) -> None:
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://a/v1", "small"

    assert list_models("diagnoser").is_open
    check_model("diagnoser", "huge")
    with pytest.raises(LoopError, match="no endpoint can be asked for rehearsal-diagnoser"):
        check_model("diagnoser", "rehearsal-diagnoser")


def test_settings_that_cannot_be_read_break_no_page(settings: Settings) -> None:
    settings.LLM_ENDPOINTS = [{"base_url": 7}]

    assert list_models("editor") == ModelChoice()
