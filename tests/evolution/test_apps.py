from pytest_django import Settings

from evolution.apps import check_endpoints


def test_endpoints_that_cannot_be_used_are_an_error_before_anything_starts(settings: Settings) -> None:
    settings.LLM_ENDPOINTS = [{"base_url": "http://127.0.0.1:9/v1", "roles": ["jugde"]}]
    (error,) = check_endpoints()
    assert (error.id, error.is_serious()) == ("evolution.E001", True)
    assert "entry 1: there is no role jugde" in str(error.msg)


def test_sound_endpoints_pass(settings: Settings) -> None:
    assert check_endpoints() == []
    settings.LLM_ENDPOINTS = [{"base_url": "http://127.0.0.1:9/v1", "roles": ["judge"]}]
    assert check_endpoints() == []
