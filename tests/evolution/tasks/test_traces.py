from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from evolution.actions.push import push_spans
from evolution.adapters.formats.otlp import iter_spans
from evolution.models import FailureCase, Source, TracePart
from evolution.tasks.traces import assemble_traces, prune_traces
from tests.evolution.measured import make_harness
from tests.evolution.pushing import OTHER, TRACE, attribute, export, llm_span, make_source
from tests.evolution.racing import run_at_once

pytestmark = pytest.mark.django_db
ROOT = "aaaaaaaaaaaaaaaa"


@pytest.fixture
def source(settings: Settings) -> Source:
    settings.TRACE_QUIET_SECONDS = 0
    return make_source(make_harness())[0]


def push(source: Source, *spans: dict[str, Any]) -> None:
    assert push_spans(source, iter_spans(export(*spans))) == []


def test_a_trace_becomes_a_case_of_its_source(source: Source) -> None:
    push(source, llm_span())
    assemble_traces()
    case = FailureCase.objects.get()
    assert (case.source, case.source_id, case.reply) == ("production", TRACE, "59元")
    assert case.request["danmaku"][0]["text"] == "3号链接多少钱？"
    assert not TracePart.objects.filter(assembled_at=None).exists()


def test_a_trace_waits_until_it_is_quiet(source: Source, settings: Settings) -> None:
    settings.TRACE_QUIET_SECONDS = 30
    push(source, llm_span())
    assemble_traces()
    assert not FailureCase.objects.exists()


def test_a_trace_that_is_never_quiet_does_not_wait_for_ever(source: Source, settings: Settings) -> None:
    settings.TRACE_QUIET_SECONDS, settings.TRACE_LONGEST_WAIT_SECONDS = 1000, 60
    push(source, llm_span(), llm_span("00f067aa0ba902b8"))
    old = timezone.now() - timedelta(seconds=61)
    TracePart.objects.filter(span_id="00f067aa0ba902b7").update(received_at=old)
    assemble_traces()
    assert FailureCase.objects.count() == 1


def test_spans_of_one_trace_make_one_case_whatever_requests_they_came_in(source: Source) -> None:
    push(source, llm_span(parentSpanId=ROOT), llm_span("1" * 16, OTHER, "有货吗？"))
    push(source, {"traceId": TRACE, "spanId": ROOT, "name": "turn"})
    assemble_traces()
    assert sorted(FailureCase.objects.values_list("source_id", flat=True)) == sorted([TRACE, OTHER])


def test_a_late_span_updates_the_case(source: Source) -> None:
    push(source, llm_span(parentSpanId=ROOT))
    assemble_traces()
    session = [attribute("session.id", "live-8")]
    push(source, {"traceId": TRACE, "spanId": ROOT, "name": "turn", "attributes": session})
    assemble_traces()
    assert FailureCase.objects.get().context["session"] == "live-8"


def test_masked_values_are_told_apart_over_the_spans_of_a_trace(source: Source) -> None:
    one = llm_span(text="13812345678 13987654321", parentSpanId=ROOT)
    push(source, one)
    push(source, {"traceId": TRACE, "spanId": ROOT, "attributes": [attribute("user.id", "13987654321")]})
    assemble_traces()
    case = FailureCase.objects.get()
    assert case.request["danmaku"][0]["text"] == "[phone 1] [phone 2]"
    assert case.context["user"] == "[phone 2]"
    assert case.masked["phone"] >= 3


def test_a_trace_that_went_well_is_no_case(source: Source) -> None:
    push(source, llm_span(status={}))
    assemble_traces()
    assert not FailureCase.objects.exists()
    assert not TracePart.objects.filter(assembled_at=None).exists()


def test_spans_of_a_database_alone_are_no_case_and_keep_nobody_waiting(source: Source) -> None:
    push(source, {"traceId": OTHER, "spanId": ROOT, "name": "SELECT", "attributes": []}, llm_span())
    assemble_traces()
    assert FailureCase.objects.get().source_id == TRACE
    assert not TracePart.objects.filter(assembled_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_two_workers_make_one_case_each_time(source: Source) -> None:
    push(source, *(llm_span(f"{n:016x}", f"{n:032x}", f"question {n}") for n in range(1, 41)))
    assert run_at_once(assemble_traces, assemble_traces) == [None, None]
    assert FailureCase.objects.count() == 40
    assert set(FailureCase.objects.values_list("count", flat=True)) == {1}


def forget(trace: str) -> None:
    old = timezone.now() - timedelta(hours=25)
    TracePart.objects.filter(trace_id=trace).update(received_at=old, assembled_at=old)
    prune_traces()


def test_what_comes_after_a_trace_was_forgotten_leaves_its_case_as_it_is(source: Source) -> None:
    push(source, llm_span(parentSpanId=ROOT))
    assemble_traces()
    forget(TRACE)
    push(source, {"traceId": TRACE, "spanId": ROOT, "name": "turn"})
    assemble_traces()
    case = FailureCase.objects.get()
    assert case.reply == "59元"
    assert case.trajectory["messages"]
    prune_traces()
    assert not TracePart.objects.filter(assembled_at=None).exists()


def test_a_trace_that_still_goes_on_is_kept_whole(source: Source) -> None:
    push(source, llm_span(parentSpanId=ROOT), {"traceId": TRACE, "spanId": ROOT, "name": "turn"})
    assemble_traces()
    TracePart.objects.filter(span_id=ROOT).update(received_at=timezone.now() - timedelta(hours=25))
    prune_traces()
    assert TracePart.objects.count() == 2


def test_of_a_forgotten_trace_without_a_case_nothing_is_kept(source: Source) -> None:
    push(source, llm_span(status={"code": 1}))
    assemble_traces()
    forget(TRACE)
    assert not TracePart.objects.exists()


def test_a_source_whose_rule_cannot_be_read_keeps_no_other_waiting(source: Source) -> None:
    other = make_source(source.harness, "other")[0]
    push(source, llm_span())
    push(other, llm_span(trace=OTHER, text="有货吗？"))
    Source.objects.filter(pk=source.pk).update(rule={"thresholds": [{"limit": "?"}]})
    assemble_traces()
    assert FailureCase.objects.get().source == "other"
    Source.objects.filter(pk=source.pk).update(rule={})
    assemble_traces()
    assert FailureCase.objects.count() == 2


def test_parts_are_forgotten_after_a_day_unless_they_wait(source: Source) -> None:
    push(source, llm_span(), llm_span("1" * 16, OTHER))
    TracePart.objects.update(received_at=timezone.now() - timedelta(hours=25))
    TracePart.objects.filter(trace_id=TRACE).update(assembled_at=timezone.now())
    prune_traces()
    assert TracePart.objects.get().trace_id == OTHER
