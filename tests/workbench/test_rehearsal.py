import pytest

from evolution.models import Evaluation
from workbench.rehearsal import Cast, cast_of, join_casts

FOREIGN: dict[str, object] = {"kind": "command", "command": ["rehearsal.sh"]}


def make(
    model: str = "m", judge: str = "j", user: str = "", runner: dict[str, object] | None = None
) -> Evaluation:
    return Evaluation(model=model, judge_model=judge, user_model=user, runner=runner or {})


@pytest.mark.parametrize(
    ("evaluation", "rehearsed", "others"),
    [
        (make(), [], ["agent", "judge"]),
        (make("rehearsal-policy", "rehearsal-judge"), ["agent", "judge"], []),
        (make(judge="rehearsal-judge", user="u"), ["judge"], ["agent", "simulated user"]),
        (make(user="rehearsal-user"), ["simulated user"], ["agent", "judge"]),
        # Another agent's command line is no model, whatever it is called.
        (make("rehearsal.sh", "rehearsal-judge", runner=FOREIGN), ["judge"], ["agent"]),
    ],
)
def test_an_evaluation_names_the_parts_that_were_rehearsed(
    evaluation: Evaluation, rehearsed: list[str], others: list[str]
) -> None:
    assert cast_of(evaluation) == Cast(rehearsed, others)


def test_a_part_rehearsed_in_one_of_several_is_rehearsed() -> None:
    assert join_casts([make("rehearsal-policy"), make(judge="rehearsal-judge")]) == Cast(
        ["agent", "judge"], []
    )
