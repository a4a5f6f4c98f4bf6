from typing import Any

import pytest

from evolution.adapters.formats.detect import read_file
from evolution.adapters.formats.tau_bench import read_item
from evolution.adapters.formats.values import RecordProblem
from evolution.ports import Record
from tests.evolution.intake import TAU_BENCH, needs_data

TALK = [{"role": "user", "content": "cancel"}, {"role": "assistant", "content": "done"}]


def result(**fields: Any) -> dict[str, Any]:
    return {"task_id": 3, "trial": 1, "reward": 0.0, "traj": TALK, "info": {}, **fields}


@needs_data
def test_the_sample_run_has_its_counts() -> None:
    records = [record for record in read_file(TAU_BENCH) if isinstance(record, Record)]
    # ../shared/data/README.md
    assert (len(records), sum(record.scores["reward"] < 1 for record in records)) == (200, 116)
    assert len({record.source_id for record in records}) == 200


def test_a_run_that_ended_in_an_error_has_it_and_no_score() -> None:
    record = read_item(result(info={"error": "context window"}, traj=[]), "run", 1)
    assert (record.errors, record.scores, record.symptom) == (("context window",), {}, "")
    assert record.trajectory["status"] == "runner_error"


def test_the_right_answer_is_not_kept() -> None:
    task = {"outputs": ["327"], "instruction": "secret"}
    checked = {"info": {"outputs": {"327": False}}}
    record = read_item(result(info={"task": task, "reward_info": checked}), "run", 1)
    assert record.symptom == "reward 0: 1 of 1 required answers not given to the user"
    assert "327" not in str(record)
    assert "secret" not in str(record)


@pytest.mark.parametrize("fields", [{"task_id": None}, {"reward": None}, {"reward": "x"}, {"traj": []}])
def test_a_result_without_task_score_or_conversation_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(RecordProblem):
        read_item(result(**fields), "run", 1)
