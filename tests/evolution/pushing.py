"""What the tests of pushing share: a source with its token, and spans as OTLP has them."""

from typing import Any

from evolution.actions.sources import create_source
from evolution.models import Harness, Source
from tests.evolution.measured import DEV

TRACE, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"


def make_source(harness: Harness, name: str = "production") -> tuple[Source, dict[str, str]]:
    """A source, and the header that its token makes."""
    source, token = create_source(DEV, harness, name)
    return source, {"Authorization": f"Bearer {token}"}


def attribute(name: str, value: Any) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": value}}


def llm_span(
    span_id: str = "00f067aa0ba902b7", trace: str = TRACE, text: str = "3号链接多少钱？", **fields: Any
) -> dict[str, Any]:
    """A call of a model that went wrong."""
    return {
        "traceId": trace,
        "spanId": span_id,
        "name": "chat",
        "startTimeUnixNano": "1717243391000000000",
        "endTimeUnixNano": "1717243392000000000",
        "attributes": [
            attribute("gen_ai.operation.name", "chat"),
            attribute("gen_ai.request.model", "m"),
            attribute("gen_ai.prompt.0.role", "user"),
            attribute("gen_ai.prompt.0.content", text),
            attribute("gen_ai.completion.0.role", "assistant"),
            attribute("gen_ai.completion.0.content", "59元"),
        ],
        "status": {"code": 2, "message": "no price"},
        **fields,
    }


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    """An ExportTraceServiceRequest as JSON."""
    resource = {"attributes": [attribute("service.name", "avatar")]}
    return {
        "resourceSpans": [
            {"resource": resource, "scopeSpans": [{"scope": {"name": "t"}, "spans": list(spans)}]}
        ]
    }
