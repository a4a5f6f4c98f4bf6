"""An evaluation of the shipped harness with the rehearsal model: only what an edit can change is asked again."""

from decimal import Decimal
from typing import Any

import pytest

from evolution.actions.evaluations import start_evaluation
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.demonstration import load_cases
from evolution.loop.authors import author_of
from evolution.loop.datasets import import_dataset
from evolution.loop.repositories import open_repository
from evolution.models import DatasetVersion, Evaluation, Harness, ModelCall
from evolution.queries.estimates import estimate_evaluation
from evolution.queries.usage import usage_of
from evolution.tasks.evaluations import perform_evaluation

pytestmark = pytest.mark.django_db

SKILL = "skills/item-qa/SKILL.md"


@pytest.fixture
def harness() -> Harness:
    return ensure_starter(SYSTEM, "live_commerce")


@pytest.fixture
def version(harness: Harness) -> DatasetVersion:
    import_dataset(SYSTEM, harness, "live_commerce", load_cases())
    return DatasetVersion.objects.get(dataset__harness=harness)


def edit_skill(harness: Harness) -> str:
    """A commit that adds a line to one skill's body and changes nothing else; the skill's index stays the same."""
    repository = open_repository(harness)
    base = repository.resolve("main")
    text = repository.snapshot("main").files[SKILL] + b"\nNothing else is to be said here.\n"
    return repository.commit(
        "edited", {SKILL: text}, parent=base, author=author_of(SYSTEM), message="a line more"
    )


def measure(harness: Harness, version: DatasetVersion, ref: str, **options: Any) -> Evaluation:
    evaluation = start_evaluation(SYSTEM, harness, ref, version, enqueue=False, **options)
    perform_evaluation(evaluation)
    return evaluation


def body_of(harness: Harness) -> str:
    text = open_repository(harness).snapshot("main").files[SKILL].decode()
    return text.split("---", 2)[2].strip()


def count_calls_that_hold(evaluation: Evaluation, text: str) -> int:
    """Calls of the agent's model whose messages held a text, as the stored trajectories have them."""
    count = 0
    for trajectory in evaluation.results.values_list("trajectory", flat=True):
        held = False
        for message in trajectory["messages"]:
            # What stands before an answer is what was sent to get it.
            count += held and message["role"] == "assistant"
            held = held or text in str(message.get("content"))
    return count


def scores(evaluation: Evaluation) -> dict[str, tuple[float | None, float | None]]:
    rows = evaluation.results.values_list("case__key", "accuracy", "effectiveness")
    return {key: (accuracy, effectiveness) for key, accuracy, effectiveness in rows}


def test_after_an_edit_of_a_skills_body_only_calls_that_hold_it_are_made(
    harness: Harness, version: DatasetVersion
) -> None:
    base = measure(harness, version, "main")
    before = usage_of(base)
    expected = count_calls_that_hold(base, body_of(harness))
    candidate = measure(harness, version, edit_skill(harness))
    policy, judge = usage_of(candidate).roles
    # The added line changes nothing of what the rehearsal model says, so that the judge has nothing new to read.
    assert (policy.made, judge.made) == (expected, 0)
    assert 0 < expected < policy.asked / 4
    assert usage_of(candidate).total.asked == before.total.asked
    assert scores(candidate) == scores(base)


def test_measuring_the_same_again_makes_no_call(harness: Harness, version: DatasetVersion) -> None:
    first = measure(harness, version, "main")
    kept = ModelCall.objects.count()
    # Not the same evaluation: it would be the first one again. Its prompts are the same to the letter.
    repository = open_repository(harness)
    note = {"NOTES.md": b"read by people alone\n"}
    base = repository.resolve("main")
    repository.commit("noted", note, parent=base, author=author_of(SYSTEM), message="a note")
    again = measure(harness, version, "noted")
    total = usage_of(again).total
    assert again.pk != first.pk
    assert (total.made, total.cached) == (0, usage_of(first).total.asked)
    assert ModelCall.objects.count() == kept
    assert scores(again) == scores(first)


def test_an_estimate_foresees_the_calls_that_an_edit_costs(harness: Harness, version: DatasetVersion) -> None:
    first = estimate_evaluation(harness, "main", version)
    assert {(role.role, role.cached, role.basis) for role in first.roles} == {
        ("policy", 0, "prompt size"),
        ("judge", 0, "prompt size"),
    }
    measure(harness, version, "main")
    again = estimate_evaluation(harness, "main", version)
    assert (again.total.to_make, again.total.cost) == (0, Decimal(0))
    commit = edit_skill(harness)
    foreseen = estimate_evaluation(harness, commit, version)
    made = usage_of(measure(harness, version, commit)).total.made
    # At most the judge's calls, which nobody can foresee not to be needed, and a rounding beside it.
    assert made <= foreseen.total.to_make <= 2 * made + 2
