import io
import json
import sys
import tracemalloc
from typing import Any

import pytest

from evolution.adapters.results.detect import Source, open_source, read_source
from evolution.adapters.results.inspect_usage import Tokens, read_tokens
from evolution.adapters.results.wanted import Wanted
from evolution.errors import BrokenInput
from harness_repo.runtime.reading import read_trajectory
from tests.evolution.adapters.results.reading import count_errors, count_passes, only, read_json
from tests.evolution.intake import DATA, needs_data

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

FOLDER = DATA / "inspect"


def sample(key: Any = 1, epoch: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": key,
        "epoch": epoch,
        "input": "2+2?",
        "target": "4",
        "messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
        "scores": {"match": {"value": "C", "explanation": "4"}},
        **fields,
    }


def log_of(*samples: dict[str, Any], **run: Any) -> dict[str, Any]:
    about = {"task": "Sums", "model": "openai/m", "dataset": {}, "config": {}, **run}
    return {"version": 2, "status": "success", "eval": about, "plan": {}, "samples": list(samples)}


def pack(log: dict[str, Any], compression: int) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for one in log.pop("samples"):
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        archive.writestr("header.json", json.dumps(log))
    return data.getvalue()


@needs_data
@pytest.mark.parametrize(
    ("end", "model", "passes"),
    # The accuracy that Inspect itself wrote into each header, of 100 samples.
    [
        ("L8g2GLGDDfsiXvdJ8LyZNJ", "openai/gpt-5", 52),
        ("LthYhadZHuQjsMYHHKRep2", "anthropic/claude-sonnet-4-20250514", 57),
        ("eF3BogZE3jzpiWBjjDWbik", "google/gemini-2.5-pro", 66),
    ],
)
def test_real_logs_have_the_passes_that_inspect_counted(end: str, model: str, passes: int) -> None:
    (path,) = FOLDER.glob(f"*{end}.eval")
    run = read_source(open_source(path), Wanted())
    assert (run.dataset, run.model, run.judge) == ("popularity", model, "inspect match")
    assert (len(run.cases), len(run.results), count_passes(run)) == (100, 100, passes)
    assert sorted(run.declared, key=int) == [str(number) for number in range(1, 101)]
    for result in run.results:
        read_trajectory(result.trajectory)
        assert result.prompt_tokens > 0
        assert len(result.call_ms) == 1


@needs_data
def test_samples_without_a_score_are_errors() -> None:
    run = read_source(open_source(FOLDER / "log_tool_call_error.json"), Wanted())
    assert (len(run.results), count_errors(run)) == (1, {"judge_error": 1})
    result = only(run)
    assert (result.repeat, result.trajectory["messages"][0]["content"]) == (3, "Error: parsing: ...")


@needs_data
@pytest.mark.parametrize(
    ("name", "said"),
    [("log_invalid.txt", "line 2, column 29: broken JSON"), ("log_with_nan.txt", "has no samples")],
)
def test_a_log_without_results_is_refused_with_the_reason(name: str, said: str) -> None:
    with pytest.raises(BrokenInput, match=said):
        read_source(open_source(FOLDER / name), Wanted())


@pytest.mark.parametrize(
    ("value", "accuracy", "effectiveness"),
    [
        ("C", 1, 1),
        ("P", 0, 0.5),
        ("I", 0, 0),
        ("N", 0, 0),
        (1, 1, 1),
        (True, 1, 1),
        ("yes", 1, 1),
        ("False", 0, 0),
        ("0.25", 0, 0.25),
    ],
)
def test_values_are_read_as_inspect_reads_them(value: Any, accuracy: float, effectiveness: float) -> None:
    result = only(read_json(log_of(sample(scores={"match": {"value": value}}))))
    assert (result.accuracy, result.effectiveness) == (accuracy, effectiveness)


@pytest.mark.parametrize("value", [float("nan"), None, "maybe", 7, [1, 0]])
def test_a_value_that_is_no_score_is_an_error(value: Any) -> None:
    result = only(read_json(log_of(sample(scores={"match": {"value": value}}))))
    assert (result.accuracy, result.error_kind) == (None, "judge_output")


def test_a_sample_that_failed_is_an_error_whatever_its_score() -> None:
    failed = sample(error={"message": "APIError: overloaded", "traceback": "..."})
    late = sample(2, error={"message": "Request timed out."})
    run = read_json(log_of(failed, late))
    assert [result.error_kind for result in run.results] == ["policy_error", "timeout"]
    assert [result.accuracy for result in run.results] == [None, None]


def test_several_scores_have_to_be_chosen_from() -> None:
    log = log_of(sample(scores={"match": {"value": "I"}, "rubric": {"value": {"tone": 1, "facts": 0}}}))
    with pytest.raises(BrokenInput, match="--score:\n  match\n  rubric/tone\n  rubric/facts"):
        read_json(log)
    run = read_json(log, score="rubric/tone")
    assert (only(run).accuracy, run.judge) == (1, "inspect rubric/tone")
    with pytest.raises(BrokenInput, match="there is no tone in the file"):
        read_json(log, score="tone")


def test_epochs_are_repeats() -> None:
    run = read_json(log_of(sample(), sample(epoch=2), config={"epochs": 2}))
    assert (run.repeats, [result.repeat for result in run.results]) == (2, [0, 1])


@pytest.mark.parametrize("epoch", [99_999_999, None, 0, -1, "x", 1.5, True])
def test_an_epoch_that_is_none_costs_its_own_result_alone(epoch: Any) -> None:
    run = read_json(log_of(sample(), sample(2) | {"epoch": epoch}))
    assert [(result.key, result.repeat) for result in run.results] == [("1", 0)]
    assert "`epoch` is no number of a trial" in run.problems[0]


def test_a_limit_is_the_runs_status_and_its_score_counts() -> None:
    result = only(read_json(log_of(sample(limit={"type": "token", "limit": 100}))))
    assert (result.trajectory["status"], result.accuracy) == ("token_limit", 1)


def test_tool_calls_thinking_and_attachments_are_put_right() -> None:
    messages = [
        {"role": "user", "content": "attachment://a1"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look."}],
            "tool_calls": [{"id": "c1", "function": "look", "arguments": {"at": 1}}],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "function": "look",
            "content": "",
            "error": {"type": "timeout"},
        },
        {"role": "assistant", "content": "Nothing."},
    ]
    run = read_json(
        log_of(sample(input="attachment://a1", messages=messages, attachments={"a1": "a long text"}))
    )
    result = only(run)
    assert run.cases[0].request["danmaku"][0]["text"] == "a long text"
    assert [message["content"] for message in result.trajectory["messages"]][:2] == ["a long text", "I look."]
    (call,) = result.trajectory["tool_calls"]
    assert (call["name"], call["arguments"], call["error"]) == ("look", {"at": 1}, "error: Error: timeout: ")


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        # The total says what is counted where: OpenAI, Gemini with thinking beside, Anthropic with a cache.
        (
            {"input_tokens": 54, "output_tokens": 199, "total_tokens": 253, "reasoning_tokens": 192},
            (54, 199, 0),
        ),
        (
            {"input_tokens": 59, "output_tokens": 1, "total_tokens": 471, "reasoning_tokens": 411},
            (59, 412, 0),
        ),
        (
            {"input_tokens": 10, "output_tokens": 5, "total_tokens": 115, "input_tokens_cache_read": 100},
            (110, 5, 100),
        ),
        (
            {"input_tokens": 110, "output_tokens": 5, "total_tokens": 115, "input_tokens_cache_read": 100},
            (110, 5, 100),
        ),
    ],
)
def test_tokens_are_counted_once(usage: dict[str, int], tokens: tuple[int, int, int]) -> None:
    assert read_tokens(usage) == Tokens(*tokens)


def test_models_that_grade_are_counted_apart() -> None:
    usage = {
        "openai/m": {"input_tokens": 5, "output_tokens": 1},
        "openai/judge": {"input_tokens": 9, "output_tokens": 2},
    }
    result = only(read_json(log_of(sample(model_usage=usage))))
    assert (result.prompt_tokens, result.completion_tokens) == (5, 1)
    assert (result.judge_prompt_tokens, result.judge_completion_tokens) == (9, 2)


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_ZSTANDARD])
def test_an_archive_is_read_however_it_is_packed(compression: int) -> None:
    run = read_source(Source("log.eval", pack(log_of(sample(), sample(2)), compression)), Wanted())
    assert (len(run.results), count_passes(run)) == (2, 2)


def test_a_broken_sample_costs_its_own_result_alone() -> None:
    data = io.BytesIO(pack(log_of(sample(), sample(2)), zipfile.ZIP_STORED))
    broken = data.getvalue().replace(b'{"id": 2', b'{"id"; 2')
    run = read_source(Source("log.eval", broken), Wanted())
    assert [result.key for result in run.results] == ["1"]
    assert "samples/2_epoch_1.json" in run.problems[0]


def test_an_archive_that_unpacks_to_more_than_logs_do_is_refused() -> None:
    bomb = sample(2, store={"x": "a" * 30_000_000})
    data = pack(log_of(sample(), bomb), zipfile.ZIP_DEFLATED)
    with pytest.raises(BrokenInput, match="unpacks to 28 MB"):
        read_source(Source("x.eval", data), Wanted())


def test_of_a_sample_only_what_is_used_stays_in_memory() -> None:
    # As JSON hardly larger than the limit of an archive, and twenty times as large as objects.
    events = [
        {"event": "model", "model": "openai/m", "input": [{}] * 20_000},
        {"event": "info", "data": [[]] * 20_000},
    ]
    log = log_of(
        *(sample(n, events=events, store=[[]] * 20_000, metadata={"x": [{}] * 20_000}) for n in range(15))
    )
    data = pack(log, zipfile.ZIP_STORED)
    tracemalloc.start()
    run = read_source(Source("x.eval", data), Wanted())
    _now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(run.results) == 15
    assert most < 3 * len(data)


def test_a_cut_off_archive_is_refused_with_the_reason() -> None:
    data = pack(log_of(sample()), zipfile.ZIP_DEFLATED)[:-40]
    with pytest.raises(BrokenInput, match="is a broken archive"):
        read_source(Source("log.eval", data), Wanted())


def test_another_archive_is_refused() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("readme", "")
    with pytest.raises(BrokenInput, match="no log of Inspect"):
        read_source(Source("other.zip", data.getvalue()), Wanted())
