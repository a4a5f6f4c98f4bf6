import re

import pytest
from django.test import Client

from evolution.models import Source
from evolution.queries.sources import find_source
from tests.evolution.pushing import make_source
from tests.workbench.views.conftest import World

pytestmark = pytest.mark.django_db


def read_token(page: str) -> str:
    found = re.search(r'value="(hwb_[\w-]{43})"', page)
    assert found
    return found[1]


def test_a_new_source_shows_its_token_once(world: World, developer: Client) -> None:
    answer = developer.post(world.url("sources/create/"), {"name": "traces"})
    token = read_token(answer.content.decode())
    assert answer["Cache-Control"] == "no-store"
    assert find_source(token) == Source.objects.get(name="traces")
    again = developer.get(world.url("sources/traces/")).content.decode()
    assert token not in again
    assert "/v1/traces" in again


def test_a_new_token_and_a_disabled_source(world: World, developer: Client) -> None:
    source, _headers = make_source(world.harness, "traces")
    token = read_token(developer.post(world.url("sources/traces/token/")).content.decode())
    developer.post(world.url("sources/traces/switch/"), {"off": "1"})
    source.refresh_from_db()
    assert (find_source(token), source.is_enabled) == (source, False)


def test_settings_are_kept_and_what_is_wrong_is_told(world: World, developer: Client) -> None:
    source, _headers = make_source(world.harness, "traces")
    url = world.url("sources/traces/change/")
    developer.post(url, {"format": "auto", "rule": "reward<0.5", "mapping": "reply = answer\n"})
    source.refresh_from_db()
    assert (source.mapping, source.rule["thresholds"][0]["limit"]) == ({"reply": "answer"}, 0.5)
    page = developer.post(url, {"format": "auto", "rule": "nonsense", "mapping": ""}, follow=True)
    assert "no part of a failure rule" in page.content.decode()
    page = developer.post(url, {"format": "auto", "rule": "errors", "mapping": "no sign"}, follow=True)
    assert "OUR FIELD" in page.content.decode()


def test_viewers_look_and_change_nothing(world: World, viewer: Client) -> None:
    make_source(world.harness, "traces")
    assert viewer.get(world.url("sources/")).status_code == 200
    assert viewer.get(world.url("sources/traces/")).status_code == 200
    assert viewer.post(world.url("sources/create/"), {"name": "x"}).status_code == 403
    assert viewer.post(world.url("sources/traces/token/")).status_code == 403
