"""The receiver, with requests as exporters make them: OTLP/HTTP 1.x, protobuf and JSON."""

import gzip
import json
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from pytest_django import Settings

from evolution.actions.sources import set_enabled
from evolution.models import Harness, TracePart
from tests.evolution.measured import DEV, make_harness
from tests.evolution.pushing import TRACE, export, llm_span, make_source

pytestmark = pytest.mark.django_db
PROTOBUF, JSON = "application/x-protobuf", "application/json"


@pytest.fixture
def harness() -> Harness:
    return make_harness()


@pytest.fixture
def headers(harness: Harness) -> dict[str, str]:
    return make_source(harness)[1]


def push(body: Any, headers: dict[str, str], kind: str = JSON) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Client(enforce_csrf_checks=True).post("/v1/traces", data, content_type=kind, headers=headers)


def to_protobuf(request: dict[str, Any]) -> bytes:
    """As the official messages write it: ids are bytes there, base64 in their JSON."""
    text = (
        json.dumps(request)
        .replace(TRACE, "S/kvNXezTaajzpKdDg5HNg==")
        .replace("00f067aa0ba902b7", "APBnqgupArc=")
    )
    data: bytes = ParseDict(json.loads(text), ExportTraceServiceRequest()).SerializeToString()
    return data


def test_spans_wait_masked_for_the_rest_of_their_trace(headers: dict[str, str]) -> None:
    answer = push(export(llm_span(text="电话13812345678")), headers)
    assert (answer.status_code, answer.json(), answer["Content-Type"]) == (200, {}, JSON)
    part = TracePart.objects.get()
    assert (part.trace_id, part.span_id, part.assembled_at) == (TRACE, "00f067aa0ba902b7", None)
    assert "13812345678" not in json.dumps(part.data)


def test_protobuf_is_the_same_as_json(headers: dict[str, str]) -> None:
    push(export(llm_span()), headers)
    expected = TracePart.objects.get().data
    TracePart.objects.all().delete()
    answer = push(to_protobuf(export(llm_span())), headers, PROTOBUF)
    assert (answer.status_code, answer["Content-Type"]) == (200, PROTOBUF)
    assert not ExportTraceServiceResponse.FromString(answer.content).HasField("partial_success")
    assert TracePart.objects.get().data == expected


def test_packed_requests_are_taken(headers: dict[str, str]) -> None:
    packed = gzip.compress(to_protobuf(export(llm_span())))
    assert push(packed, headers | {"Content-Encoding": "gzip"}, PROTOBUF).status_code == 200
    assert TracePart.objects.count() == 1


def test_a_request_without_spans_is_fine(headers: dict[str, str]) -> None:
    assert push({}, headers).json() == {}
    assert push(b"", headers, PROTOBUF).content == b""


def test_spans_that_cannot_be_kept_are_told_and_the_others_are_kept(headers: dict[str, str]) -> None:
    request = export(llm_span(), llm_span(spanId=""))
    told = push(request, headers).json()["partialSuccess"]
    assert told["rejectedSpans"] == "1"
    assert "span id" in told["errorMessage"]
    response = ExportTraceServiceResponse.FromString(push(to_protobuf(request), headers, PROTOBUF).content)
    assert response.partial_success.rejected_spans == 1
    assert TracePart.objects.count() == 1


def test_ids_that_are_none_are_told(headers: dict[str, str]) -> None:
    told = push(export(llm_span(traceId="zz"), llm_span(spanId="zz")), headers).json()["partialSuccess"]
    assert told["rejectedSpans"] == "2"
    assert not TracePart.objects.exists()


def test_a_repeated_request_changes_nothing_and_a_changed_span_counts(headers: dict[str, str]) -> None:
    push(export(llm_span()), headers)
    TracePart.objects.update(assembled_at="2024-06-01T00:00Z")
    push(export(llm_span()), headers)
    assert TracePart.objects.get().assembled_at is not None
    push(export(llm_span(name="another")), headers)
    assert TracePart.objects.get().assembled_at is None


def decode_status(data: bytes) -> tuple[int, str]:
    """Code and message of a google.rpc.Status whose message is short."""
    assert (data[0], data[2]) == (0x08, 0x12)
    assert data[3] == len(data) - 4
    return data[1], data[4:].decode()


def test_errors_are_a_status_in_the_encoding_of_the_request(headers: dict[str, str]) -> None:
    answer = push(b"no protobuf", headers, PROTOBUF)
    assert (answer.status_code, answer["Content-Type"]) == (400, PROTOBUF)
    assert decode_status(answer.content) == (3, "the body is no ExportTraceServiceRequest")
    answer = push(b"[1]", headers)
    assert (answer.status_code, answer.json()["code"]) == (400, 3)


def test_who_may_not_push_is_told(harness: Harness, headers: dict[str, str]) -> None:
    assert push(export(), {}).status_code == 401
    set_enabled(DEV, harness.sources.get(), is_enabled=False)
    assert push(export(), headers).status_code == 403


def test_other_methods_types_and_sizes_are_refused(headers: dict[str, str], settings: Settings) -> None:
    assert Client().get("/v1/traces", headers=headers).status_code == 405
    assert push(b"x", headers, "text/plain").status_code == 415
    settings.PUSH_MAX_BYTES = 10
    assert push(export(llm_span()), headers).status_code == 413


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_has_the_exporter_try_again() -> None:
    _source, headers = make_source(make_harness())
    connection = connections["default"]
    host = connection.settings_dict["HOST"]
    connection.close()
    connection.settings_dict["HOST"] = "/nowhere"
    try:
        answer = push(export(llm_span()), headers, JSON)
    finally:
        connection.close()
        connection.settings_dict["HOST"] = host
    assert (answer.status_code, answer["Retry-After"], answer.json()["code"]) == (503, "5", 14)
