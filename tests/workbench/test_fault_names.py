from typing import get_args

from evolution.prompts.diagnosis import NOT_THE_HARNESS, FaultKind, Part
from workbench.fault_names import explain_outside, list_parts, name_fault


def test_every_kind_of_fault_has_words() -> None:
    kinds = get_args(FaultKind)

    assert len({name_fault(kind) for kind in kinds}) == len(kinds)
    assert [kind for kind in kinds if name_fault(kind) == kind] == []
    assert name_fault("of another time") == "of another time"


def test_people_can_blame_what_the_model_can() -> None:
    assert {part for part, _name in list_parts()} == set(get_args(Part))
    assert all(explain_outside(part) for part in NOT_THE_HARNESS)
