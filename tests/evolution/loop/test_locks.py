import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest

from evolution.errors import MoveRefused
from evolution.loop import promotion
from evolution.loop.repositories import open_repository
from evolution.models import Step
from evolution.states import StepState
from harness_repo.git.repository import HarnessRepository
from tests.evolution.measured import ANNA, DEV, make_measured_step, teach
from tests.evolution.racing import run_at_once

pytestmark = pytest.mark.django_db(transaction=True)
GOOD = teach(*range(1, 21))


@pytest.mark.parametrize("other", [promotion.revise, promotion.stop])
def test_of_two_decisions_at_once_one_is_made(other: Callable[..., object]) -> None:
    step = make_measured_step(GOOD)
    stale = Step.objects.get(pk=step.pk)
    run_at_once(lambda: promotion.promote(ANNA, step), lambda: other(ANNA, stale, "not yet"))
    step.refresh_from_db()
    newest = step.harness.releases.first()
    main = open_repository(step.harness).resolve("main")
    assert newest is not None
    assert newest.commit == main
    assert (step.state == StepState.PROMOTED) == (main == step.candidate_commit)


def test_revision_waits_for_a_promotion_that_has_moved_main() -> None:
    step = make_measured_step(GOOD)
    stale = Step.objects.get(pk=step.pk)
    advance = HarnessRepository.advance_main
    revisions: list[Future[list[object]]] = []

    def advance_and_let_revise(*args: Any, **options: Any) -> None:
        advance(*args, **options)
        revisions.append(pool.submit(run_at_once, lambda: promotion.revise(DEV, stale, "not yet")))
        time.sleep(0.3)
        assert not revisions[0].done()

    patched = mock.patch.object(HarnessRepository, "advance_main", advance_and_let_revise)
    with ThreadPoolExecutor(1) as pool, patched:
        promotion.promote(ANNA, step)
    assert [type(error) for error in revisions[0].result()] == [MoveRefused]
    assert Step.objects.get().state == StepState.PROMOTED
