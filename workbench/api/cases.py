"""Failures pushed by machines, with the token of a source."""

from http import HTTPStatus
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from evolution.actions.push import push_cases
from evolution.errors import BrokenInput
from evolution.loop.pushed import PushReport
from workbench.api.bodies import Refused, read_body
from workbench.api.pushing import get_source

router = Router(tags=["cases"])

TYPES = frozenset(
    {
        "application/json", "application/x-ndjson", "application/ndjson", "application/jsonl",
        "application/x-jsonlines", "application/json-seq", "text/csv", "text/tab-separated-values", "text/plain",
        "application/octet-stream", "application/zip", "application/gzip", "application/zstd",
        # What curl says where nobody says anything.
        "application/x-www-form-urlencoded",
    }
)  # fmt: skip
MOST_PROBLEMS = 100


class PushedProblem(Schema):
    """A record that could not be used."""

    file: str = Field(description="its name where the body is an archive")
    line: int = Field(description="physical line of the body on which it starts, 1-based")
    number: int = Field(description="its place among several on one line, 1-based; else 0")
    reason: str


class Pushed(Schema):
    """What became of the records; `read` is the sum of the five below it."""

    read: int
    new: int
    updated: int
    duplicate: int
    passed: int = Field(description="not a failure by the rule of the source")
    rejected: int
    problems: list[PushedProblem] = Field(description=f"the first {MOST_PROBLEMS}")
    masked: dict[str, int] = Field(description="how often each masking rule struck")
    formats: list[str] = Field(description="what the body was found to be")


class PushProblem(Schema):
    """Why nothing was taken."""

    detail: str


class HowToRead(Schema):
    """What the body is; the source's own settings where it is left out."""

    format: str = Field("", max_length=32, description="a format's name; found out by content without one")


_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "records in any of the known formats, gzip-encoded where Content-Encoding says so",
        "content": {
            "application/json": {
                "schema": {"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]},
                "example": {
                    "id": "2024-06-01/17",
                    "request": {"danmaku": [{"user": "小美", "text": "3号链接多少钱？"}], "history": []},
                    "reply": "3号链接现在59元哈。",
                    "symptom": "券后价说错了",
                    "scores": {"accuracy": 0},
                },
            },
            "application/x-ndjson": {"schema": {"type": "string"}},
            "text/csv": {"schema": {"type": "string"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    },
    "security": [{"SourceToken": []}],
}
_Refusal = Literal[400, 401, 403, 413, 415, 503]
_REFUSALS: dict[int, type[Schema]] = dict.fromkeys(_Refusal.__args__, PushProblem)  # type: ignore[attr-defined]


@router.post(
    "/cases",
    response={200: Pushed, 422: Pushed | PushProblem, **_REFUSALS},
    openapi_extra=_BODY,
    summary="Push failures",
)
def push(request: HttpRequest, how: Query[HowToRead]) -> Status[Any]:
    """Take records into the inbox of the source's harness; those with a known id change nothing, or update their case.

    422 says that nothing of the body could be used.
    """
    source = get_source(request)
    data, _media_type = read_body(request, TYPES)
    try:
        report = push_cases(source, data, fmt=how.format)
    except BrokenInput as problem:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(problem)) from None
    # Nothing to push is no mistake.
    is_useless = bool(report.read) and report.rejected == report.read
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_useless else HTTPStatus.OK
    return Status(status, _describe(report))


def _describe(report: PushReport) -> dict[str, Any]:
    return {
        **report.counts(),
        "problems": [problem._asdict() for problem in report.problems[:MOST_PROBLEMS]],
        "masked": dict(report.masked),
        "formats": sorted({name for name in report.formats.values() if name}),
    }


def write_refusal(api: Any, request: HttpRequest, refused: Refused) -> HttpResponse:
    """A refusal as JSON."""
    response: HttpResponse = api.create_response(request, {"detail": str(refused)}, status=refused.status)
    return response
