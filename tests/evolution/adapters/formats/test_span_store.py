import pytest

from evolution.adapters.formats import span_store
from evolution.adapters.formats.span_store import SpanStore


def test_spans_come_back_by_trace_with_every_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that they wait on disk.
    monkeypatch.setattr(span_store, "_IN_MEMORY", 10)
    spans = [
        {"trace_id": trace, "n": 2**70 + number, "text": "多少钱\n"} for number, trace in enumerate("abab")
    ]
    with SpanStore() as store:
        for line, span in enumerate(spans, 5):
            store.add(span, line)
        assert list(store.traces()) == [(5, [spans[0], spans[2]]), (6, [spans[1], spans[3]])]
