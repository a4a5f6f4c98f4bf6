from typing import Any

import pytest

from evolution.loop.blame import Accuser, find_blame
from evolution.models import Cluster, FailureCase
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import make_harness
from tests.workbench.views.conftest import make_diagnosis

CALLS = {
    "tool_calls": [{"turn": 1, "error": None}, {"turn": 2, "error": "timeout"}, {"turn": 3, "error": "x"}]
}


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster(make_harness())


def fail(cluster: Cluster, **fields: Any) -> FailureCase:
    return make_failure(cluster.harness, cluster=cluster, trajectory=CALLS, **fields)


def test_the_source_knows_best(cluster: Cluster) -> None:
    case = fail(cluster, blamed_turn=4)
    make_diagnosis(cluster, case)

    blame = find_blame(case)

    assert blame is not None
    assert (blame.turn, blame.by) == (4, Accuser.SOURCE)


def test_then_the_diagnosis_that_cites_the_case(cluster: Cluster) -> None:
    case, other = fail(cluster), fail(cluster)
    make_diagnosis(cluster, case)

    assert [blame and (blame.turn, blame.by) for blame in map(find_blame, (case, other))] == [
        (1, Accuser.DIAGNOSIS),
        (2, Accuser.TOOL),
    ]


def test_a_rejected_diagnosis_blames_nobody(cluster: Cluster) -> None:
    case = fail(cluster)
    diagnosis = make_diagnosis(cluster, case)
    type(diagnosis).objects.update(state="rejected")

    blame = find_blame(case)

    assert blame is not None
    assert (blame.turn, blame.by, blame.detail) == (2, Accuser.TOOL, "timeout")


@pytest.mark.parametrize(
    "odd", [None, [], 5, {}, {"tool_calls": [{"turn": True, "error": "x"}, {"error": 1}]}]
)
def test_any_shape_is_survived(cluster: Cluster, odd: Any) -> None:
    assert find_blame(FailureCase(trajectory=odd)) is None
