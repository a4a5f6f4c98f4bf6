"""Every (from, to) pair of every state machine, against a table written down by hand."""

from itertools import product

import pytest
from django.db.models import TextChoices

from evolution import states

# By machine, the moves as words; what is not listed is refused.
ALLOWED: dict[type[TextChoices], str] = {
    states.CaseState: "open>ignored open>resolved ignored>open resolved>open",
    states.ClusterState: (
        "new>escalating new>diagnosed new>ignored new>resolved "
        "escalating>diagnosed escalating>ignored escalating>resolved "
        "diagnosed>in_progress diagnosed>ignored diagnosed>escalating diagnosed>resolved "
        "in_progress>resolved in_progress>diagnosed in_progress>ignored "
        "resolved>regressed regressed>diagnosed regressed>ignored regressed>resolved ignored>new"
    ),
    states.ImportState: (
        "preview>queued queued>running queued>failed running>finished running>failed failed>queued failed>running"
    ),
    states.DiagnosisState: "open>accepted open>rejected accepted>rejected accepted>open rejected>open",
    states.ProposalState: (
        "drafting>drafted drafting>failed drafted>confirmed drafted>rejected drafted>drafting "
        "failed>drafting failed>rejected "
        "confirmed>in_step confirmed>rejected confirmed>drafted confirmed>drafting "
        "in_step>released in_step>confirmed in_step>drafted in_step>rejected"
    ),
    states.StepState: (
        "ready>evaluating ready>revised ready>rolled_back ready>stopped "
        "evaluating>evaluated evaluating>ready "
        "evaluated>promoted evaluated>revised evaluated>rolled_back evaluated>stopped "
        "evaluated>evaluating evaluated>ready promoted>rolled_back rolled_back>promoted"
    ),
    states.EvaluationState: (
        "queued>running queued>finished queued>partial queued>cancelled "
        "running>finished running>partial running>cancelled "
        "partial>queued partial>running partial>cancelled "
        "cancelled>queued"
    ),
    states.JobState: (
        "queued>running queued>failed queued>done running>done running>failed running>queued failed>queued"
    ),
}
PAIRS: list[tuple[type[TextChoices], TextChoices, TextChoices]] = [
    (machine, source, target) for machine in ALLOWED for source, target in product(list(machine), repeat=2)
]


@pytest.mark.parametrize(
    ("machine", "source", "target"), PAIRS, ids=lambda value: getattr(value, "value", None)
)
def test_a_move_is_allowed_only_when_it_is_listed(
    machine: type[TextChoices], source: TextChoices, target: TextChoices
) -> None:
    listed = f"{source.value}>{target.value}" in ALLOWED[machine].split()
    assert states.is_allowed(source, target) is listed


def test_every_state_of_a_machine_has_a_row() -> None:
    for machine, moves in states.MOVES.items():
        assert set(moves) == set(machine.values)
