from pytest_django import Settings

from evolution.apps import check_endpoints, check_prices, check_tool_grants


def test_endpoints_that_cannot_be_used_are_an_error_before_anything_starts(settings: Settings) -> None:
    settings.LLM_ENDPOINTS = [{"base_url": "http://127.0.0.1:9/v1", "roles": ["jugde"]}]
    (error,) = check_endpoints()
    assert (error.id, error.is_serious()) == ("evolution.E001", True)
    assert "entry 1: there is no role jugde" in str(error.msg)


def test_sound_endpoints_pass(settings: Settings) -> None:
    assert check_endpoints() == []
    settings.LLM_ENDPOINTS = [{"base_url": "http://127.0.0.1:9/v1", "roles": ["judge"]}]
    assert check_endpoints() == []


def test_grants_that_cannot_be_used_are_an_error_before_anything_starts(settings: Settings) -> None:
    settings.TOOL_SECRETS = {"SHOP": {"env": "NO_SUCH_VARIABLE", "hosts": ["shop.example.com"]}}
    (error,) = check_tool_grants()
    assert (error.id, error.is_serious()) == ("evolution.E002", True)
    assert "the variable NO_SUCH_VARIABLE is not set" in str(error.msg)


def test_sound_grants_pass(settings: Settings) -> None:
    assert check_tool_grants() == []
    settings.TOOL_HOSTS = ["shop.example.com", "10.1.0.0/16"]
    assert check_tool_grants() == []


def test_prices_that_cannot_be_used_are_an_error_before_anything_starts(settings: Settings) -> None:
    settings.MODEL_PRICES = {"gpt-4o": {"input": 2.5}}
    (error,) = check_prices()
    assert (error.id, error.is_serious()) == ("evolution.E003", True)
    assert "gpt-4o: output: Field required" in str(error.msg)


def test_sound_prices_pass(settings: Settings) -> None:
    assert check_prices() == []
    settings.MODEL_PRICES = {"gpt-4o": {"input": 2.5, "output": 10}}
    assert check_prices() == []
