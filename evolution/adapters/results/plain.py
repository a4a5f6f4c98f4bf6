"""Our own format of results: JSON Lines; evolution/adapters/results/result.schema.json has every field.

    {"run": {"dataset": "refunds", "model": "our-agent 7", "judge": "rubric 3", "repeats": 2}}
    {"case": "refund-001", "accuracy": 1, "effectiveness": 0.5, "request": "Can I return it?", "reply": "Yes, ...",
     "latency_ms": 900, "prompt_tokens": 1200, "completion_tokens": 80, "cost": 0.004}
    {"case": "refund-002", "repeat": 1, "score": 0.7, "messages": [{"role": "user", "content": "..."}, ...]}
    {"case": "refund-003", "error": "the agent's endpoint was down", "error_kind": "runner_error"}

`case` and one of `accuracy`, `score` and `error` are needed; the first line with `run` may be left out.
"""

import functools
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.messages import check_messages, split_request
from evolution.adapters.formats.shapes import as_dict, as_text
from evolution.adapters.formats.values import RecordProblem
from evolution.adapters.results.numbers import NoScore, grade, read_cost, read_count, read_ms, read_share
from evolution.adapters.results.transcripts import Transcript, shown_reply
from evolution.adapters.results.wanted import Items, Wanted
from evolution.ports import MeasuredCase, MeasuredResult, MeasuredRun
from harness_repo.format.json_schema import find_violation
from harness_repo.runtime.reading import read_trajectory

FORMAT = "jsonl"


@functools.cache
def load_schema() -> dict[str, Any]:
    """The schema of a line."""
    text = resources.files("evolution.adapters.results").joinpath("result.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def fits(lines: list[Any]) -> bool:
    """Say whether one of these records is a result of ours."""
    return any(isinstance(line, dict) and "case" in line and _HOW & set(line) for line in lines)


_HOW = {"accuracy", "score", "error"}


@dataclass
class _Reading:
    """What is read of the lines so far."""

    wanted: Wanted
    run: dict[str, Any] = field(default_factory=dict)
    cases: dict[str, MeasuredCase] = field(default_factory=dict)
    results: list[MeasuredResult] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def take(self, record: Any) -> None:
        """Take one line; RecordProblem says what is wrong with it, and where."""
        if isinstance(record, RecordProblem):
            raise record
        if not isinstance(record, dict):
            raise RecordProblem(_("a record must be an object"))
        if "run" in record and "case" not in record:
            self.run = _checked(as_dict(record["run"]), load_schema()["$defs"]["run"])
            return
        self._take_result(_checked(record, load_schema()))

    def _take_result(self, record: dict[str, Any]) -> None:
        key = str(record["case"])
        trajectory = _read_trajectory(record)
        case = _read_case(key, record, trajectory)
        known = self.cases.get(key)
        # A request that one line has and another has not is no other request.
        if known is None or not (known.request.get("danmaku") or known.request.get("user")):
            self.cases[key] = case
        repeat = record.get("repeat", self.lines[key])
        self.results.append(_read_result(key, repeat, record, trajectory, self.wanted))
        self.lines[key] += 1


def read(lines: list[tuple[int, Any]], wanted: Wanted) -> MeasuredRun:
    """The run of numbered records; those that can't be read are among its problems."""
    reading, items = _Reading(wanted), Items()
    for number, record in lines:
        try:
            reading.take(record)
        except RecordProblem as problem:
            items.reject(f"{wanted.name}:{number}", problem)
    run = reading.run
    return MeasuredRun(
        format=FORMAT,
        dataset=wanted.name_dataset(run.get("dataset")),
        model=run.get("model", ""),
        judge=run.get("judge", ""),
        user_model=run.get("user_model", ""),
        cases=list(reading.cases.values()),
        results=reading.results,
        repeats=run.get("repeats", 1),
        problems=items.problems,
        details={"version": run.get("version", "")},
    )


def _checked(record: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    wrong = find_violation(schema, record)
    if wrong:
        raise RecordProblem(wrong)
    return record


def _read_trajectory(record: dict[str, Any]) -> dict[str, Any]:
    if "trajectory" in record:
        try:
            return read_trajectory(record["trajectory"]).to_dict()
        except ValueError as failure:
            raise RecordProblem(str(failure).replace("$", "$.trajectory", 1)) from None
    if "messages" not in record:
        return {}
    check_messages(record["messages"])
    status, error = ("runner_error", record["error"]) if record.get("error") else ("ok", "")
    return Transcript(
        record["messages"], latency_ms=read_ms(record.get("latency_ms")), status=status, error=error
    ).to_dict()


def _read_case(key: str, record: dict[str, Any], trajectory: dict[str, Any]) -> MeasuredCase:
    request = record.get("request")
    if isinstance(request, str):
        request = {"danmaku": [{"user": "user", "text": request}], "history": []}
    return MeasuredCase(
        key=key,
        request=split_request(trajectory.get("messages", [])) if request is None else request,
        category=record.get("category", "") or "case",
        language=record.get("language", ""),
        split=record.get("split", "dev"),
        context=record.get("context", {}),
        expected=record.get("expected", {}),
    )


def _read_result(
    key: str, repeat: int, record: dict[str, Any], trajectory: dict[str, Any], wanted: Wanted
) -> MeasuredResult:
    tokens = {
        name: read_count(record.get(name)) for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    }
    reasons = record.get("reasons", {})
    return MeasuredResult(
        key=key,
        repeat=repeat,
        **_read_scores(record, wanted),
        reasons={"accuracy": reasons} if isinstance(reasons, str) else reasons,
        findings=record.get("findings", []),
        reply=record.get("reply") or shown_reply(trajectory),
        trajectory=trajectory,
        **(tokens if any(tokens.values()) else as_dict(trajectory.get("usage"))),
        latency_ms=read_ms(record.get("latency_ms")) or read_ms(trajectory.get("latency_ms")),
        call_ms=list(_list_calls(record, trajectory)),
        cost=read_cost(record.get("cost")),
    )


def _list_calls(record: dict[str, Any], trajectory: dict[str, Any]) -> Iterator[float]:
    if "call_ms" in record:
        yield from map(read_ms, record["call_ms"])
    else:
        yield from (read_ms(call.get("ms")) for call in trajectory.get("calls", []))


def _read_scores(record: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    if record.get("error") or record.get("error_kind"):
        return {
            "error_kind": record.get("error_kind", "runner_error"),
            "error": as_text(record.get("error")),
        }
    try:
        # Accuracy is on its own scale, whatever that of the scores is.
        given = record.get("accuracy")
        scores = grade(bool(given), Wanted()) if given is not None else grade(record.get("score"), wanted)
    except NoScore as failure:
        return {"error_kind": "judge_output", "error": f"$.score: {failure}"}
    try:
        if record.get("effectiveness") is not None:
            scores["effectiveness"] = read_share(record["effectiveness"])
    except NoScore as failure:
        return {"error_kind": "judge_output", "error": f"$.effectiveness: {failure}"}
    return scores
