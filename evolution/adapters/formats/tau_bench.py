"""tau-bench result files: a JSON list of {task_id, trial, reward, info, traj}; `traj` is in OpenAI messages.

A record is a result, a task in one trial. One that ended in an error has that error and no score. `info.task` holds the
right answer, so none of it is kept: what we store of a failure is shown to the model that diagnoses it.
https://github.com/sierra-research/tau-bench
"""

from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.items import Where, each
from evolution.adapters.formats.messages import build_trajectory, check_messages, last_reply, split_request
from evolution.adapters.formats.values import RecordProblem, expect, number
from evolution.ports import Record

NAME = SOURCE = "tau-bench"
MAX_REWARD = 1e9
LONGEST_ERROR = 2000


def fits(value: Any) -> bool:
    """Say whether a JSON value has the fields of this format."""
    return isinstance(value, dict) and "traj" in value and "reward" in value


def read_item(item: dict[str, Any], name: str, line: int) -> Record:
    """Turn one cleaned result into a record; raises RecordProblem."""
    info = expect(item, "info", dict, {})
    error = str(info.get("error") or "")[:LONGEST_ERROR]
    # A run that ended in an error has no score, whatever its reward says, and often no conversation.
    reward = None if error else _read_reward(item)
    messages = check_messages(item.get("traj")) if item.get("traj") or not error else []
    if item.get("task_id") is None:
        raise RecordProblem(_("`%(name)s` is missing") % {"name": "task_id"})
    return Record(
        source=SOURCE,
        source_id=f"{name}/task-{item['task_id']}/trial-{item.get('trial', 0)}",
        failed=None,
        line=line,
        request=split_request(messages),
        context={"task_id": item["task_id"], "trial": item.get("trial", 0)},
        trajectory=build_trajectory(messages, status="runner_error" if error else "ok", error=error),
        reply=last_reply(messages),
        symptom=_symptom(reward, info) if reward is not None and reward < 1 else "",
        scores={} if reward is None else {"reward": reward},
        category=str(info.get("source") or ""),
        errors=(error,) if error else (),
        has_status=True,
    )


def _read_reward(item: dict[str, Any]) -> float:
    reward = number(item.get("reward"))
    if reward is None or abs(reward) > MAX_REWARD:
        raise RecordProblem(_("`%(name)s` is missing or out of range") % {"name": "reward"})
    return reward


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


def _read_result(item: dict[str, Any], where: Where, line: int) -> Record:
    return read_item(item, where.stem, line)


read = each(_read_result)
