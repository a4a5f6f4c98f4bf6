from typing import Any

import pytest

from evolution.adapters.formats import tau2_bench
from evolution.adapters.formats.detect import read_file
from evolution.adapters.formats.items import Item, Where
from evolution.ports import Check, Record, Rejected
from tests.evolution.intake import DATA, needs_data

WHERE = Where("run.json", "run")


def read(*simulations: Any) -> list[Record | Rejected]:
    document = {"info": {"git_commit": "a" * 40}, "tasks": [], "simulations": list(simulations)}
    return list(tau2_bench.read(iter([Item(1, document)]), WHERE))


def simulation(**fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "cancel"}, {"role": "assistant", "content": "done"}]
    reward = {"reward": 1.0, "reward_breakdown": {"DB": 1.0}}
    return {"task_id": "7", "trial": 0, "messages": messages, "reward_info": reward, **fields}


def only(**fields: Any) -> Record:
    (record,) = read(simulation(**fields))
    assert isinstance(record, Record)
    return record


@needs_data
@pytest.mark.parametrize(
    ("name", "simulations", "passed"),
    # ../shared/data/README.md
    [
        ("airline-base", 20, 10),
        ("airline-finetuned", 20, 13),
        ("retail-base", 40, 34),
        ("retail-finetuned", 40, 34),
    ],
)
def test_the_sample_runs_have_their_counts(name: str, simulations: int, passed: int) -> None:
    records = [r for r in read_file(DATA / "tau2_bench" / f"{name}.json") if isinstance(r, Record)]
    assert (len(records), sum(record.scores["reward"] == 1 for record in records)) == (simulations, passed)
    assert len({record.source_id for record in records}) == simulations


@needs_data
def test_the_tasks_that_broke_are_those_that_are_known() -> None:
    def passing(name: str) -> set[str]:
        records = read_file(DATA / "tau2_bench" / f"{name}.json")
        return {r.context["task_id"] for r in records if isinstance(r, Record) and r.scores["reward"] == 1}

    assert passing("airline-base") - passing("airline-finetuned") == {"18", "29", "45"}
    assert passing("retail-base") - passing("retail-finetuned") == {"18", "27", "33", "64", "71", "111"}


def test_parts_of_the_reward_are_checks_and_what_the_task_asked_for_is_not_kept() -> None:
    missed = {"action": {"name": "refund", "arguments": {"order": "W1"}}, "action_match": False}
    reward = {"reward": 0.0, "reward_breakdown": {"DB": 0.0, "COMMUNICATE": 1.0}, "action_checks": [missed]}
    record = only(reward_info=reward)
    assert record.checks == (Check("DB", passed=False), Check("COMMUNICATE", passed=True))
    assert record.failed is None
    assert "W1" not in str(record)


def test_a_millionth_off_is_all_of_the_reward() -> None:
    assert only(reward_info={"reward": 0.9999999}).scores == {"reward": 1.0}


def test_a_simulation_that_broke_has_an_error_and_no_score() -> None:
    record = only(termination_reason="infrastructure_error", reward_info={"reward": 0.0})
    assert (record.scores, record.errors) == ({}, ("infrastructure_error",))


def test_a_simulation_without_a_task_is_rejected_with_its_number() -> None:
    rejected, fine = read(simulation(task_id=None), simulation())
    assert isinstance(rejected, Rejected)
    assert (rejected.line, rejected.number) == (1, 1)
    assert isinstance(fine, Record)
    assert (fine.source_id, fine.harness_commit) == ("run/task-7/trial-0", "a" * 40)
