import json
import time

import pytest

from harness_repo.runtime import foreign
from harness_repo.runtime.foreign import MOST_BYTES, MOST_VALUES, hide_in_run, read_answer
from harness_repo.runtime.trajectory import Trajectory

RUNNER = {"kind": "http", "status": 200}


def read(**answer: object) -> Trajectory:
    return read_answer(json.dumps(answer).encode(), RUNNER, 5.0)


@pytest.mark.parametrize(
    "body",
    [
        b'{"reply":"x","messages":[{"role":"user","content":[' + b"0," * 1_900_000 + b"0]}]}",
        b'{"reply":"x","tool_calls":[{"name":"t","result":[' + b"[]," * 1_300_000 + b"0]}]}",
        b'{"reply":"x","more":{' + b",".join(b'"%d":0' % n for n in range(250_000)) + b"}}",
    ],
)
def test_answer_of_very_many_values_is_refused_before_anybody_walks_over_it(body: bytes) -> None:
    assert len(body) < MOST_BYTES
    began = time.process_time()
    with pytest.raises(ValueError, match=f"more than {MOST_VALUES} values in it"):
        read_answer(body, RUNNER, 1.0)
    assert time.process_time() - began < 5


def test_one_long_text_is_taken() -> None:
    assert len(read(reply="x" * 3_000_000).reply or "") == 3_000_000


def test_what_an_agent_says_of_a_conversation_is_left_out() -> None:
    got = read(
        reply="r", conversation=[{"user": "u", "reply": "right", "status": "ok"}], user_calls=[{"ms": 1}]
    )
    assert (got.conversation, got.user_calls, got.replies()) == ([], [], ["r"])


@pytest.mark.parametrize(
    "status", ["ok", "turn_limit", "tool_call_limit", "time_limit", "blocked", "hook_limit"]
)
def test_agent_may_say_that_it_came_to_a_limit(status: str) -> None:
    assert read(status=status, reply="r").status == status


@pytest.mark.parametrize("status", ["model_error", "runner_error", "user_error", "agent_error"])
def test_failure_is_the_agents_own_when_it_says_so(status: str) -> None:
    got = read(status=status, error="too hard")
    assert (got.status, got.reply, got.error) == ("agent_error", None, "too hard")


def test_out_of_time_without_a_word_is_its_own_failure_too() -> None:
    assert read(status="time_limit").status == "agent_error"


def test_secret_that_is_a_word_of_the_format_costs_the_answer_and_nothing_else() -> None:
    run = read(reply="r", messages=[{"role": "assistant", "content": "r"}])
    hidden = hide_in_run(run, ["assistant"])
    assert (hidden.status, hidden.reply) == ("runner_error", None)
    assert hide_in_run(run, []) is run


def test_hiding_keeps_what_is_no_secret() -> None:
    run = read(reply="r", tool_calls=[{"name": "t", "result": {"n": 1, "f": 1.5, "t": True, "z": None}}])
    assert hide_in_run(run, ["s3cr3t-s3cr3t"]) == run
    assert foreign.hide_in_run(Trajectory("time_limit", None), ["s3cr3t"]).status == "time_limit"


def test_what_an_agent_says_of_kept_calls_is_left_out() -> None:
    got = read(reply="r", calls=[{"ms": 1, "cache_key": "0" * 32, "is_cached": True}])
    assert (got.calls[0].ms, got.calls[0].cache_key, got.calls[0].is_cached) == (1, "", False)
