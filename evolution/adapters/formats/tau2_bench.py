"""Runs of tau2-bench; a record is a simulation, a task in one trial.

The reward is the score, its parts are checks. A simulation that ended for reasons beside the agent has an error and no
score. What a task asks for is not kept: a failure is shown to the model that diagnoses it. See `results.tau2_bench`.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from evolution.adapters.formats.items import Item, Where, attempt
from evolution.adapters.formats.logged_runs import find_commit
from evolution.adapters.formats.measured import build_record, number_records, open_document
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, read_time
from evolution.adapters.formats.values import RecordProblem, number
from evolution.adapters.results import tau2_bench
from evolution.adapters.results.wanted import Wanted
from evolution.ports import Check, MeasuredResult, Record, Rejected

NAME = SOURCE = tau2_bench.FORMAT


def fits(value: Any) -> bool:
    """Say whether a JSON value is such a run."""
    return tau2_bench.fits(value)


def read(items: Iterator[Item], where: Where) -> Iterator[Record | Rejected]:
    """Read the simulations of a file."""
    for item in items:
        try:
            document = open_document(item)
        except RecordProblem as problem:
            yield Rejected(item.line, str(problem), item.number)
            continue
        info = as_dict(document.get("info"))
        for place, simulation in number_records(as_list(document.get("simulations"))):
            yield attempt(partial(_read_simulation, simulation, info, where, item.line), item.line, place)


def _read_simulation(simulation: dict[str, Any], info: Mapping[str, Any], where: Where, line: int) -> Record:
    result = tau2_bench.read_simulation(simulation, Wanted())
    reward = as_dict(simulation.get("reward_info"))
    named = f"{where.stem}/task-{result.key}/trial-{result.repeat}"
    agent = as_dict(info.get("agent_info"))
    domain = as_text(as_dict(info.get("environment_info")).get("domain_name"))
    return build_record(
        result,
        source=SOURCE,
        source_id=as_text(simulation.get("id")) or named,
        line=line,
        scores=_read_reward(reward, result),
        context={
            "task_id": result.key,
            "trial": result.repeat,
            "domain": domain,
            "ended": as_text(simulation.get("termination_reason")),
            "model": as_text(agent.get("llm")) or as_text(agent.get("implementation")),
        },
        checks=_list_checks(reward),
        harness_commit=find_commit(as_text(info.get("git_commit"))),
        happened_at=read_time(simulation.get("start_time")) or read_time(simulation.get("timestamp")),
    )


def _read_reward(reward: Mapping[str, Any], result: MeasuredResult) -> dict[str, float]:
    """The reward; a millionth off counts as all of it, as in the benchmark."""
    value = number(reward.get("reward"))
    if value is None or result.accuracy is None:
        return {}
    return {"reward": 1.0 if result.accuracy else value}


def _list_checks(reward: Mapping[str, Any]) -> Iterator[Check]:
    """The parts that the reward is made of; others are told by the benchmark, and count for nothing."""
    for name, value in as_dict(reward.get("reward_breakdown")).items():
        part = number(value)
        if part is not None:
            yield Check(name, passed=part >= 1)
