import asyncio
import logging
import time

import pytest
from asgiref.sync import async_to_sync
from pytest_django import Settings

from evolution.adapters import chat
from evolution.adapters.chat import Role, SlowModel, build_model, configured_endpoints, limit_name, model_name
from evolution.adapters.rehearsal.model import RehearsalModel
from evolution.adapters.routing import RoutedChatModel
from evolution.errors import LoopError
from evolution.limits.granting import Wish, grant_shares
from evolution.limits.shared import SharedPlaces
from evolution.models import LimitShare, SharedLimit
from harness_repo.runtime.chat import ChatError, ChatRequest
from tests.evolution.adapters.misbehaving import after, fail, misbehaving, reply_with

REQUEST = ChatRequest("m", [{"role": "user", "content": "hello"}])


@pytest.fixture(autouse=True)
def _knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_known", {})


@pytest.mark.parametrize("role", Role)
def test_rehearsal_serves_every_role_by_default(role: Role) -> None:
    model, name = build_model(role)
    assert isinstance(model, RehearsalModel)
    assert name == model_name(role) == f"rehearsal-{role.value}"


def test_endpoint_serves_a_role_under_its_own_model_name(settings: Settings) -> None:
    settings.LLM_BASE_URL = "http://127.0.0.1:9/v1"
    settings.LLM_MODEL_JUDGE = "grader"
    model, name = build_model("judge")
    assert isinstance(model, RoutedChatModel)
    assert name == model_name("judge") == "grader"
    with pytest.raises(LoopError, match="LLM_MODEL_EDITOR"):
        build_model("editor")
    assert model_name("editor") == ""


def test_rehearsal_can_be_slowed_down(settings: Settings) -> None:
    settings.REHEARSAL_DELAY_SECONDS = 0.01
    assert isinstance(build_model("policy").model, SlowModel)


def test_listed_endpoints_serve_their_roles_beside_the_one(settings: Settings) -> None:
    settings.LLM_MODEL_POLICY = settings.LLM_MODEL_USER = "m"
    settings.LLM_ENDPOINTS = [{"base_url": "http://127.0.0.1:9/v1", "roles": ["policy"]}]
    assert isinstance(build_model("policy").model, RoutedChatModel)
    with pytest.raises(LoopError, match="no endpoint of LLM_ENDPOINTS serves the user"):
        build_model("user")
    settings.LLM_BASE_URL = "http://127.0.0.1:10/v1"
    policy, user = build_model("policy").model, build_model("user").model
    assert isinstance(policy, RoutedChatModel)
    assert isinstance(user, RoutedChatModel)
    assert [len(model.routes) for model in (policy, user)] == [2, 1]


def test_name_of_a_model_may_come_from_the_endpoints_when_they_agree(settings: Settings) -> None:
    one = {"base_url": "http://127.0.0.1:9/v1", "model": "m-1"}
    settings.LLM_ENDPOINTS = [one]
    assert build_model("policy").name == "m-1"
    settings.LLM_ENDPOINTS = [one, {"base_url": "http://127.0.0.1:10/v1", "model": {"policy": "other"}}]
    with pytest.raises(LoopError, match="by different names: set LLM_MODEL or LLM_MODEL_POLICY"):
        build_model("policy")
    settings.LLM_MODEL_POLICY = "m"
    model, name = build_model("policy")
    assert name == "m"
    assert isinstance(model, RoutedChatModel)
    assert [route.model_name for route in model.routes] == ["m-1", "other"]


def test_endpoints_that_cannot_be_read_say_why(settings: Settings) -> None:
    settings.LLM_ENDPOINTS = [{"base_url": "http://127.0.0.1:9/v1"}, {"url": "http://127.0.0.1:9/v1"}]
    with pytest.raises(LoopError, match="LLM_ENDPOINTS can't be used: entry 2: base_url: Field required"):
        build_model("policy")
    assert model_name("policy") == ""


def test_what_one_role_learns_of_an_endpoint_holds_for_the_others(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.LLM_MODEL_POLICY = settings.LLM_MODEL_JUDGE = "m"
    settings.LLM_MAX_RETRIES = 0
    with misbehaving(fail(503)) as bad, misbehaving(reply_with("good")) as good:
        settings.LLM_ENDPOINTS = [
            {"base_url": bad.url, "name": "bad", "roles": ["policy"]},
            {"base_url": good.url, "name": "good", "roles": ["judge"]},
        ]
        with caplog.at_level(logging.WARNING):
            for _ in range(5):
                with pytest.raises(ChatError):
                    asyncio.run(build_model("policy").model.complete(REQUEST))
        asyncio.run(build_model("judge").model.complete(REQUEST))
        settings.LLM_ENDPOINTS = [{"base_url": bad.url}, {"base_url": good.url}]
        for _ in range(3):
            asyncio.run(build_model("judge").model.complete(REQUEST))
        assert (len(bad.bodies), len(good.bodies)) == (5, 4)
    assert "endpoint bad (m) isolated for 5.0 s: 5 of 5 calls failed" in caplog.text


def test_an_evaluation_is_answered_by_the_model_that_it_recorded_and_by_no_other(settings: Settings) -> None:
    with misbehaving(reply_with("hi")) as server:
        settings.LLM_BASE_URL = server.url
        settings.LLM_MODEL_JUDGE = "new"
        model, name = build_model("judge", "recorded")
        assert name == "recorded"
        asyncio.run(model.complete(ChatRequest(name, REQUEST.messages)))
        assert server.bodies[0]["model"] == "recorded"
        # What an endpoint calls today's model is no name for another one.
        settings.LLM_ENDPOINTS = [{"base_url": server.url, "model": "deployment-7"}]
        model, name = build_model("judge", "new")
        assert isinstance(model, RoutedChatModel)
        assert [route.model_name for route in model.routes] == ["new", "deployment-7"]
        model, name = build_model("judge", "recorded")
        assert isinstance(model, RoutedChatModel)
        assert [route.model_name for route in model.routes] == ["recorded"]


def test_a_recorded_model_that_nobody_serves_any_more_is_named(settings: Settings) -> None:
    with pytest.raises(LoopError, match="m-1 is not configured for the policy any more"):
        build_model("policy", "m-1")
    assert build_model("policy", "rehearsal-policy").name == "rehearsal-policy"
    settings.LLM_ENDPOINTS = [{"base_url": "http://127.0.0.1:9/v1", "model": "m-2"}]
    with pytest.raises(LoopError, match=r"m-1 is not configured .* \(it is m-2 now\)"):
        build_model("policy", "m-1")
    settings.LLM_ENDPOINTS = [{"base_url": "http://127.0.0.1:9/v1"}]
    with pytest.raises(LoopError, match="rehearsal-policy is not configured"):
        build_model("policy", "rehearsal-policy")


async def ask_at_once(calls: int, *roles: str) -> None:
    async def ask(role: str) -> None:
        model = build_model(role).model
        assert isinstance(model, RoutedChatModel)
        async with model:
            await asyncio.gather(*(model.complete(REQUEST) for _ in range(calls)))

    await asyncio.gather(*(ask(role) for role in roles))


@pytest.mark.django_db
def test_limit_of_an_endpoint_is_for_all_roles_and_held_in_the_database(settings: Settings) -> None:
    with misbehaving(after(0.02, reply_with("hi"))) as server:
        settings.LLM_BASE_URL, settings.LLM_CONCURRENCY = server.url, 3
        settings.LLM_MODEL_POLICY = settings.LLM_MODEL_JUDGE = "m"
        # Another process has one of the three.
        name = limit_name(configured_endpoints()[0])
        grant_shares("another", [Wish(name, 1, wanted=1, taken=1, held=1)])
        async_to_sync(ask_at_once)(10, "policy", "judge")
        assert (server.most_at_once, len(server.bodies)) == (2, 20)
    assert list(LimitShare.objects.values_list("holder", flat=True)) == ["another"]


@pytest.mark.django_db
def test_requests_per_minute_of_an_endpoint_are_kept(settings: Settings) -> None:
    with misbehaving() as server:
        settings.LLM_BASE_URL, settings.LLM_MODEL_POLICY = server.url, "m"
        settings.LLM_REQUESTS_PER_MINUTE = 620
        started = time.monotonic()
        async_to_sync(ask_at_once)(15, "policy")
        # Ten at once, and ten a second.
        assert time.monotonic() - started > 0.4


@pytest.mark.django_db
def test_tokens_that_calls_took_are_counted_as_they_were(settings: Settings) -> None:
    with misbehaving() as server:
        settings.LLM_BASE_URL, settings.LLM_MODEL_POLICY = server.url, "m"
        settings.LLM_TOKENS_PER_MINUTE = 62_000
        async_to_sync(ask_at_once)(2, "policy")
        limit = SharedLimit.objects.get()
        # Each took ten, of some hundreds that were expected; a second's worth is 1,000.
        assert 980 <= limit.tokens_left <= 1000


def test_a_share_of_an_endpoint_is_held_for_as_long_as_its_calls_may_take(settings: Settings) -> None:
    settings.LLM_ENDPOINTS = [{"base_url": "http://127.0.0.1:9/v1", "model": "m", "seconds": 90}]
    model = build_model("policy").model
    assert isinstance(model, RoutedChatModel)
    places = model.routes[0].health.places
    assert isinstance(places, SharedPlaces)
    assert places.wish().longest == 90
