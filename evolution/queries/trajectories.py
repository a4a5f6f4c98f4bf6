"""A result's trajectory in the formats that other programs read."""

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.loop.repositories import read_version
from evolution.models import CaseResult, Evaluation
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.agent import tool_definitions
from harness_repo.runtime.export import to_atif, to_openai
from harness_repo.runtime.reading import read_trajectory
from harness_repo.runtime.trajectory import Trajectory


def export_trajectory(result: CaseResult, format_name: str) -> dict[str, Any]:
    """The trajectory of a result as one JSON object; `format_name` is one of FORMATS.

    Raises LoopError when the result has no trajectory.
    """
    if not result.trajectory:
        raise LoopError(_("This result has no trajectory."))
    try:
        # It has been stored, so it is not too long.
        trajectory = read_trajectory(result.trajectory, most_entries=None)
    except ValueError as failure:
        raise LoopError(_("The trajectory can't be read: %s") % failure) from None
    return _WRITERS[format_name](result, trajectory)


def _write_openai(result: CaseResult, trajectory: Trajectory) -> dict[str, Any]:
    return to_openai(trajectory, _offered_tools(result.evaluation), result.case.request)


def _write_atif(result: CaseResult, trajectory: Trajectory) -> dict[str, Any]:
    evaluation = result.evaluation
    return to_atif(
        trajectory,
        session_id=f"{evaluation.harness.name}-{evaluation.pk}-{result.case.key}-{result.repeat}",
        agent_name=evaluation.harness.name,
        agent_version=evaluation.commit,
        model_name=evaluation.model,
        tools=_offered_tools(evaluation),
        request=result.case.request,
    )


def _write_json(_result: CaseResult, trajectory: Trajectory) -> dict[str, Any]:
    return trajectory.to_dict()


def _offered_tools(evaluation: Evaluation) -> list[dict[str, Any]]:
    """What the model was offered; of an agent that is not ours, or of an unknown version, nobody knows."""
    if evaluation.runner or not evaluation.commit:
        return []
    try:
        return tool_definitions(read_version(evaluation.harness, evaluation.commit))
    except HarnessRepoError:
        return []


_WRITERS: dict[str, Callable[[CaseResult, Trajectory], dict[str, Any]]] = {
    "openai": _write_openai,
    "atif": _write_atif,
    "json": _write_json,
}
FORMATS = tuple(_WRITERS)
