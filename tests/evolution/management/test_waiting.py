import asyncio
import os
import signal
from io import StringIO

import pytest
from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from evolution.loop import engine
from evolution.management.waiting import find_evaluation, report, wait_for
from evolution.models import Evaluation
from evolution.states import EvaluationState, ShardState
from evolution.tasks.evaluations import perform_evaluation
from tests.evolution.measured import make_case, make_evaluation, make_harness, make_version, outage, run

pytestmark = pytest.mark.django_db


class Terminal(StringIO):
    """Standard error of a person at a keyboard."""

    def isatty(self) -> bool:
        return True


def make_pair() -> tuple[Evaluation, Evaluation]:
    """A candidate of six pairs, and its base of three."""
    harness = make_harness()
    version = make_version(harness, [make_case(f"q{n}") for n in (1, 2, 3)])
    base = make_evaluation(harness, version=version)
    candidate = make_evaluation(harness, version=version, repeats=2, base=base)
    Evaluation.objects.update(model="rehearsal-policy", judge_model="rehearsal-judge")
    for one in (base, candidate):
        one.refresh_from_db()
    return candidate, base


def test_base_and_candidate_are_waited_for_and_the_line_is_the_candidates() -> None:
    candidate, base = make_pair()
    terminal = Terminal()
    wait_for(candidate, OutputWrapper(terminal))
    for one in (candidate, base):
        one.refresh_from_db()
    assert (candidate.state, base.state) == (EvaluationState.FINISHED, EvaluationState.FINISHED)
    written = terminal.getvalue().split("\r")
    assert {part.split()[1].partition("/")[2] for part in written[1:]} == {"6"}
    assert (written[-1].split()[1], written[-1][-1]) == ("6/6", "\n")


def test_progress_is_that_of_the_evaluation_asked_for_also_when_only_its_base_is_left() -> None:
    candidate, base = make_pair()
    run(candidate)
    told: list[tuple[int, int]] = []
    perform_evaluation(candidate, lambda done, total: told.append((done, total)))
    base.refresh_from_db()
    assert (set(told), base.state) == ({(6, 6)}, EvaluationState.FINISHED)


def test_an_interrupt_stops_what_is_under_way_and_leaves_the_rest_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(600)

    monkeypatch.setattr(engine, "score_case", interrupt)
    candidate, _base = make_pair()
    Evaluation.objects.update(concurrency=1)
    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(signal, "SIG_DFL", signal.SIG_IGN)
    with pytest.raises(CommandError, match=f"resume_evaluation {candidate.pk} --wait") as ended:
        wait_for(candidate, OutputWrapper(StringIO()))
    assert ended.value.returncode == 130
    assert signal.getsignal(signal.SIGINT) == handler
    assert set(candidate.shards.values_list("state", "attempts")) == {(ShardState.QUEUED, 0)}
    assert not candidate.results.exists()


def test_base_that_ended_with_errors_is_an_exit_code_too(capsys: pytest.CaptureFixture[str]) -> None:
    candidate, base = make_pair()
    run(candidate)
    run(base, judge=outage())
    report(BaseCommand(), candidate, as_json=False)
    with pytest.raises(SystemExit) as ended:
        report(BaseCommand(), candidate, as_json=False, base=base)
    assert ended.value.code == 4
    assert f"base: evaluation {base.pk} is finished with errors: 3 results" in capsys.readouterr().out


def test_evaluation_that_is_not_there_is_a_usage_error() -> None:
    with pytest.raises(CommandError, match="there is no evaluation 0") as refused:
        find_evaluation(0)
    assert refused.value.returncode == 2
