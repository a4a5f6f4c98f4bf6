"""The OTLP/HTTP receiver for traces, in protobuf and JSON: https://opentelemetry.io/docs/specs/otlp/#otlphttp.

An exporter is pointed at it by OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, and carries the token of a source.
"""

import json
from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from evolution.actions.push import push_spans
from evolution.adapters.formats.otlp import fits, iter_spans, parse_protobuf
from evolution.adapters.formats.values import DECODER, RecordProblem
from workbench.api.bodies import Refused, read_body
from workbench.api.pushing import answer_refusals, get_source

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_TYPES = frozenset({PROTOBUF, "application/protobuf", JSON})
# Reasons that are told of one request.
_MOST_REASONS = 5
# As google.rpc.Code has them.
_CODES = {
    HTTPStatus.BAD_REQUEST: 3,
    HTTPStatus.UNAUTHORIZED: 16,
    HTTPStatus.FORBIDDEN: 7,
    HTTPStatus.METHOD_NOT_ALLOWED: 12,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 8,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: 3,
    HTTPStatus.SERVICE_UNAVAILABLE: 14,
}


def _write_status(request: HttpRequest, refused: Refused) -> HttpResponse:
    """A google.rpc.Status, in the encoding of the request: what the specification wants of every error."""
    code, message = _CODES.get(refused.status, 2), str(refused)
    if request.content_type == JSON:
        return HttpResponse(json.dumps({"code": code, "message": message}), content_type=JSON)
    text = message.encode()
    # Field 1, a small integer, and field 2, a text with its length.
    data = bytes([0x08, code, 0x12, *_varint(len(text))]) + text
    return HttpResponse(data, content_type=PROTOBUF)


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


@csrf_exempt
@login_not_required
@answer_refusals(_write_status)
def traces(request: HttpRequest) -> HttpResponse:
    """Take an ExportTraceServiceRequest; what of it can't be kept is told in the partial success."""
    if request.method != "POST":
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, _("spans are sent by POST"))
    source = get_source(request)
    data, media_type = read_body(request, _TYPES)
    is_json = media_type == JSON
    problems = push_spans(source, iter_spans(_parse(data, is_json=is_json)))
    return _answer_json(problems) if is_json else _answer_protobuf(problems)


def _parse(data: bytes, *, is_json: bool) -> dict[str, Any]:
    try:
        if not is_json:
            return parse_protobuf(data)
        request = DECODER.decode(data.decode())
    except (RecordProblem, ValueError, RecursionError):
        raise _unreadable() from None
    if request != {} and not fits(request):
        raise _unreadable()
    return dict(request)


def _unreadable() -> Refused:
    return Refused(HTTPStatus.BAD_REQUEST, _("the body is no ExportTraceServiceRequest"))


def _answer_json(problems: list[str]) -> HttpResponse:
    # An int64 is a text in the JSON of protobuf.
    told = {"rejectedSpans": str(len(problems)), "errorMessage": _summarise(problems)}
    return HttpResponse(json.dumps({"partialSuccess": told} if problems else {}), content_type=JSON)


def _answer_protobuf(problems: list[str]) -> HttpResponse:
    response = ExportTraceServiceResponse()
    if problems:
        response.partial_success.rejected_spans = len(problems)
        response.partial_success.error_message = _summarise(problems)
    return HttpResponse(response.SerializeToString(), content_type=PROTOBUF)


def _summarise(problems: list[str]) -> str:
    return "; ".join(list(dict.fromkeys(problems))[:_MOST_REASONS])
