import gzip
import json
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from pytest_django import Settings

from evolution.actions.sources import change_source, set_enabled
from evolution.loop.failure_rules import parse_rule
from evolution.models import FailureCase, Harness
from tests.evolution.measured import DEV, make_harness
from tests.evolution.pushing import make_source

pytestmark = pytest.mark.django_db
RECORD = {"id": "7", "request": "3号链接多少钱？", "reply": "59元", "symptom": "券后价说错了"}


@pytest.fixture
def harness() -> Harness:
    return make_harness()


@pytest.fixture
def headers(harness: Harness) -> dict[str, str]:
    return make_source(harness)[1]


def push(body: Any, headers: dict[str, str], kind: str = "application/json", path: str = "/api/cases") -> Any:
    data = body if isinstance(body, bytes | str) else json.dumps(body)
    return Client(enforce_csrf_checks=True).post(path, data, content_type=kind, headers=headers)


def test_a_record_becomes_a_case_of_the_source(harness: Harness, headers: dict[str, str]) -> None:
    answer = push(RECORD, headers)
    counts = {"read": 1, "new": 1, "updated": 0, "duplicate": 0, "passed": 0, "rejected": 0}
    assert answer.status_code == 200
    assert answer.json() == counts | {"problems": [], "masked": {}, "formats": ["jsonl"]}
    case = FailureCase.objects.get()
    assert (case.harness, case.source, case.source_id) == (harness, "production", "7")


def test_the_same_again_changes_nothing(headers: dict[str, str]) -> None:
    push(RECORD, headers)
    assert push(RECORD, headers).json()["duplicate"] == 1
    assert FailureCase.objects.get().count == 1


def test_records_without_ids_do_not_take_each_others_place(headers: dict[str, str]) -> None:
    for text in ("a", "b", "a"):
        push({"request": text, "symptom": "wrong"}, headers)
    assert FailureCase.objects.count() == 2


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ([RECORD, RECORD | {"id": "8", "reply": "x"}], "application/json"),
        (
            f"{json.dumps(RECORD)}\n\n{json.dumps(RECORD | {'id': '8', 'reply': 'x'})}\n",
            "application/x-ndjson",
        ),
        ("id,request,reply,symptom\n1,a,b,c\n2,d,e,f\n", "text/csv"),
    ],
)
def test_lists_lines_and_tables_are_taken(headers: dict[str, str], body: Any, kind: str) -> None:
    assert push(body, headers, kind).json()["new"] == 2


def test_a_packed_body_is_unpacked(headers: dict[str, str]) -> None:
    packed = gzip.compress(json.dumps(RECORD).encode())
    assert push(packed, headers | {"Content-Encoding": "gzip"}).json()["new"] == 1


def test_a_bad_line_costs_nothing_beside_it(headers: dict[str, str]) -> None:
    answer = push(f'{json.dumps(RECORD)}\n{{"id": \n', headers, "application/x-ndjson")
    assert (answer.status_code, answer.json()["new"], answer.json()["rejected"]) == (200, 1, 1)
    assert answer.json()["problems"][0]["line"] == 2


def test_personal_data_and_secrets_never_reach_the_database(headers: dict[str, str]) -> None:
    answer = push(
        RECORD | {"request": "电话13812345678", "context": {"api_key": "abcd1234efgh5678"}}, headers
    )
    assert answer.json()["masked"] == {"phone": 1, "assigned-key": 1}
    stored = str(FailureCase.objects.values().get())
    assert "13812345678" not in stored
    assert "abcd1234" not in stored


def test_what_says_nothing_of_success_is_no_failure_unless_the_rule_says_so(
    harness: Harness, headers: dict[str, str]
) -> None:
    silent = {"id": "1", "request": "a", "reply": "b"}
    assert push(silent, headers).json()["passed"] == 1
    change_source(DEV, harness.sources.get(), fmt="auto", rule=parse_rule("unscored"), mapping={})
    assert push(silent, headers).json()["new"] == 1


def test_nothing_to_push_is_no_mistake(headers: dict[str, str]) -> None:
    answer = push("[]", headers)
    assert (answer.status_code, answer.json()["read"]) == (200, 0)


def test_what_can_be_used_in_no_way_is_422_and_says_why(headers: dict[str, str]) -> None:
    answer = push("no json", headers)
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["line"] == 1
    assert push(RECORD, headers, path="/api/cases?format=none").status_code == 422


@pytest.mark.parametrize(
    "header",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}, {"Authorization": "Bearer "}],
)
def test_without_a_known_token_it_is_401(harness: Harness, header: dict[str, str]) -> None:
    answer = push(RECORD, header)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert "Authorization" in answer.json()["detail"]


def test_a_disabled_source_is_403(harness: Harness, headers: dict[str, str]) -> None:
    set_enabled(DEV, harness.sources.get(), is_enabled=False)
    assert push(RECORD, headers).status_code == 403
    assert not FailureCase.objects.exists()


def test_other_media_types_and_encodings_are_415(headers: dict[str, str]) -> None:
    assert push(b"x", headers, "image/png").status_code == 415
    assert push(RECORD, headers | {"Content-Encoding": "br"}).status_code == 415


def test_too_large_bodies_are_413_packed_or_not(headers: dict[str, str], settings: Settings) -> None:
    settings.PUSH_MAX_BYTES = 1000
    assert push(b" " * 1001, headers).status_code == 413
    packed = gzip.compress(b" " * 100_000)
    assert push(packed, headers | {"Content-Encoding": "gzip"}).status_code == 413


def test_a_damaged_packed_body_is_400(headers: dict[str, str]) -> None:
    packed = gzip.compress(json.dumps(RECORD).encode())[:-12]
    assert push(packed, headers | {"Content-Encoding": "gzip"}).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_is_worth_another_try() -> None:
    _source, headers = make_source(make_harness())
    connection = connections["default"]
    host = connection.settings_dict["HOST"]
    connection.close()
    connection.settings_dict["HOST"] = "/nowhere"
    try:
        answer = push(RECORD, headers)
    finally:
        connection.close()
        connection.settings_dict["HOST"] = host
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert push(RECORD, headers).json()["new"] == 1
