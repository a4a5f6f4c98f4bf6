"""Results of tau-bench: a JSON list of {task_id, trial, reward, info, traj}; a run that ended in an error has none.

https://github.com/sierra-research/tau-bench
"""

from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.shapes import as_dict, as_list, as_text
from evolution.adapters.formats.values import RecordProblem
from evolution.adapters.results.numbers import NoScore, grade, read_repeat
from evolution.adapters.results.tau2_bench import build_request
from evolution.adapters.results.transcripts import Transcript, read_request, shown_reply
from evolution.adapters.results.wanted import Items, Wanted
from evolution.ports import MeasuredCase, MeasuredResult, MeasuredRun

FORMAT = "tau-bench"


def fits(document: Any) -> bool:
    """Say whether a JSON value is such a list."""
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, dict) and {"task_id", "reward", "traj"} <= set(first)


def read(document: list[Any], wanted: Wanted) -> MeasuredRun:
    """The run; entries that can't be read are among its problems. The file names no models."""
    items = Items()
    cases: dict[str, MeasuredCase] = {}
    results = []
    for number, entry in enumerate(document):
        try:
            result = _read_entry(as_dict(entry), wanted)
            if result.key not in cases:
                cases[result.key] = _read_case(result.key, as_dict(entry))
            results.append(result)
        except RecordProblem as problem:
            items.reject(f"{wanted.name}: {number}", problem)
    return MeasuredRun(
        format=FORMAT,
        dataset=wanted.name_dataset(""),
        model="",
        judge=FORMAT,
        user_model="",
        cases=list(cases.values()),
        results=results,
        repeats=1 + max((result.repeat for result in results), default=0),
        problems=items.problems,
    )


def _read_case(key: str, entry: dict[str, Any]) -> MeasuredCase:
    task = as_dict(as_dict(entry.get("info")).get("task"))
    told = as_text(task.get("instruction"))
    request = build_request({"instructions": told}) if told else read_request(entry.get("traj"))
    facts = [{"fact": text, "accept": [text]} for text in map(as_text, as_list(task.get("outputs"))) if text]
    actions = [
        {"name": as_text(action.get("name")), "arguments": action.get("kwargs")}
        for action in as_list(task.get("actions"))
        if isinstance(action, dict)
    ]
    return MeasuredCase(
        key=key, request=request, category="task", expected={"facts": facts, "actions": actions}
    )


def _read_entry(entry: dict[str, Any], wanted: Wanted) -> MeasuredResult:
    key = as_text(entry.get("task_id"))
    if not key:
        raise RecordProblem(_("`%(name)s` is missing") % {"name": "task_id"})
    failure = as_text(as_dict(entry.get("info")).get("error"))
    status = "runner_error" if failure else "ok"
    transcript = Transcript(as_list(entry.get("traj")), status=status, error=failure).to_dict()
    return MeasuredResult(
        key=key,
        repeat=read_repeat(entry, "trial"),
        reply=shown_reply(transcript),
        trajectory=transcript,
        **_read_scores(entry, failure, wanted),
    )


def _read_scores(entry: dict[str, Any], failure: str, wanted: Wanted) -> dict[str, Any]:
    if failure:
        return {"error_kind": "runner_error", "error": failure}
    try:
        return {**grade(entry.get("reward"), wanted), "reasons": {"accuracy": f"reward {entry['reward']}"}}
    except NoScore as problem:
        return {"error_kind": "judge_error", "error": f"reward: {problem}"}
