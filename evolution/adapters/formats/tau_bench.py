"""tau-bench result files: a JSON list of {task_id, trial, reward, info, traj}; `traj` is in OpenAI messages.

A reward below 1 is a failure. `info.task` holds the right answer, so none of it is kept: what we store of a
failure is shown to the model that diagnoses it. https://github.com/sierra-research/tau-bench
"""

from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.messages import build_trajectory, check_messages, last_reply, split_request
from evolution.adapters.formats.values import RecordProblem, expect
from evolution.ports import Record

SOURCE = "tau-bench"
MAX_REWARD = 1e9


def is_tau_bench(item: dict[str, Any]) -> bool:
    """Say whether a record has the fields of this format."""
    return "traj" in item and "reward" in item


def read_item(item: dict[str, Any], name: str, line: int) -> Record:
    """Turn one cleaned result into a record; raises RecordProblem."""
    reward = _read_reward(item)
    messages = check_messages(item.get("traj"))
    info = expect(item, "info", dict, {})
    return Record(
        source=SOURCE,
        source_id=f"{name}/task-{item.get('task_id')}/trial-{item.get('trial', 0)}",
        failed=reward < 1,
        line=line,
        request=split_request(messages),
        context={"task_id": item.get("task_id"), "trial": item.get("trial", 0)},
        trajectory=build_trajectory(messages),
        reply=last_reply(messages),
        symptom=_symptom(reward, info) if reward < 1 else "",
        scores={"reward": reward},
        category=str(info.get("source") or ""),
    )


def _read_reward(item: dict[str, Any]) -> float | int:
    """A run that ended in an error has no score, whatever its reward says."""
    if item.get("task_id") is None:
        raise RecordProblem(_("`%(name)s` is missing") % {"name": "task_id"})
    info = item.get("info")
    if isinstance(info, dict) and info.get("error"):
        text = _("the run ended in an error and has no score: %(error)s")
        raise RecordProblem(text % {"error": str(info["error"])[:200]})
    reward = expect(item, "reward", (int, float), None)
    if reward is None or abs(reward) > MAX_REWARD:
        raise RecordProblem(_("`%(name)s` is missing or out of range") % {"name": "reward"})
    return reward  # type: ignore[no-any-return]


def _symptom(reward: float, info: dict[str, Any]) -> str:
    """Say which check failed, without the expected values that the file has beside it."""
    result = info.get("reward_info")
    checks = result.get("info") if isinstance(result, dict) else None
    if not isinstance(checks, dict):
        return f"reward {reward:g}: the conversation ended before the task was done"
    if isinstance(checks.get("outputs"), dict):
        missing = sum(1 for given in checks["outputs"].values() if not given)
        return (
            f"reward {reward:g}: {missing} of {len(checks['outputs'])} required answers not given to the user"
        )
    return f"reward {reward:g}: the data after the conversation is not what the task asks for"
