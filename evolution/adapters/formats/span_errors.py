"""What broke in a trace: spans with an error status and exceptions, each once though it goes up through all of them."""

from typing import Any

from evolution.adapters.formats.shapes import as_text
from evolution.adapters.formats.span_attributes import find, find_text
from evolution.adapters.formats.span_tree import Span, Tree

_LONGEST = 500


def list_errors(tree: Tree) -> tuple[str, ...]:
    """The errors of a trace as "span: error", the innermost span of each; in the order in which they came up."""
    found: list[tuple[int, str, str]] = []
    # The innermost spans start last.
    for span in reversed(tree.spans):
        text = describe_error(span)
        if text and not any(text in known or known in text for _start, _name, known in found):
            found.append((span.start, span.name, text))
    return tuple(f"{name}: {text}" if name else text for _start, name, text in reversed(found))


def describe_error(span: Span) -> str:
    """How a span failed, "" when it did not; an exception counts as long as the span doesn't say that it went well."""
    exceptions = [event.attributes for event in span.events if event.name == "exception"]
    if not _has_failed(span) and not (exceptions and span.status != "ok"):
        return ""
    for attributes in reversed(exceptions):
        if text := _join(find_text(attributes, "exception.type"), find_text(attributes, "exception.message")):
            return text
    message = span.message or find_text(
        span.attributes,
        "langfuse.observation.status_message",
        "error.message",
        "exception.message",
        "genkit:error",
    )
    kind = find_text(span.attributes, "error.type", "exception.type")
    return _join("" if kind and kind in message else kind, message) or "error"


def _has_failed(span: Span) -> bool:
    said = (find(span.attributes, "langfuse.observation.level"), find(span.attributes, "genkit:state"))
    return span.status == "error" or any(_is_error(value) for value in said)


def _is_error(value: Any) -> bool:
    return as_text(value).lower() == "error"


def _join(kind: str, message: str) -> str:
    text = " ".join(": ".join(filter(None, (kind, message))).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
