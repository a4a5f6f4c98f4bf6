"""Inside an evaluation: the agent's place taken by answers that are stored, so that another judge can read them."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from evolution.loop.coalescing import Coalesced
from evolution.loop.outcomes import CASE_ERROR, JUDGE_ERROR, JUDGE_OUTPUT, JUDGE_TIMEOUT, NOT_STARTED
from evolution.models import CaseResult
from harness_repo.runtime.reading import read_trajectory
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import CallRecord, Trajectory

# With these the agent had answered.
_JUDGES_FAILURES = frozenset({JUDGE_ERROR, JUDGE_TIMEOUT, JUDGE_OUTPUT})

# A case's key and a repeat.
Place = tuple[str, int]


class NoAnswer(Exception):
    """There is nothing to judge; `kind` is the error of the result that should hold the answer."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class _Stored:
    """What of a result can be judged again."""

    trajectory: dict[str, object]
    reply: str
    error_kind: str
    error: str

    def read(self) -> Trajectory:
        """The trajectory, or the reply alone where results made elsewhere had no more; ValueError if it is none."""
        return read_trajectory(self.trajectory or {"reply": self.reply}, most_entries=None)


class StoredAnswers:
    """A runner that asks no agent: it gives back what one has answered in another evaluation, conversations too."""

    def __init__(self, evaluation_id: int, model_name: str, user_name: str = "") -> None:
        # As prices know the models that were asked then.
        self.model_name = model_name
        self.user_name = user_name
        self._evaluation_id = evaluation_id
        self._stored: Coalesced[Place, _Stored] = Coalesced(self._look_up)

    async def run(self, case: RunCase) -> Trajectory:
        """The stored trajectory, its calls marked as kept ones; raises NoAnswer where it is an error or not there."""
        stored = await self._stored.get((case.key, case.repeat))
        if stored is None:
            raise NoAnswer(f"evaluation {self._evaluation_id} has no result of it", NOT_STARTED)
        # A budget ends the agent's calls or the judge's; what its run looks like tells.
        if stored.error_kind and stored.error_kind not in _JUDGES_FAILURES and not _is_judgeable(stored):
            raise NoAnswer(stored.error, stored.error_kind)
        try:
            answered = stored.read()
        except ValueError as failure:
            raise NoAnswer(f"the stored trajectory can't be read: {failure}", CASE_ERROR) from failure
        return replace(answered, calls=_kept(answered.calls), user_calls=_kept(answered.user_calls))

    def _look_up(self, places: Collection[Place]) -> dict[Place, _Stored]:
        wanted = set(places)
        rows = CaseResult.objects.filter(
            evaluation=self._evaluation_id,
            case__key__in={key for key, _ in wanted},
            repeat__in={repeat for _, repeat in wanted},
        ).values_list("case__key", "repeat", "trajectory", "reply", "error_kind", "error")
        return {
            (key, repeat): _Stored(*rest) for key, repeat, *rest in rows.iterator() if (key, repeat) in wanted
        }


def _is_judgeable(stored: _Stored) -> bool:
    return stored.error_kind == "budget" and stored.trajectory.get("status") not in (
        None, "model_error", "runner_error", "user_error",
    )  # fmt: skip


def _kept(calls: list[CallRecord]) -> list[CallRecord]:
    """The calls as this evaluation sees them: it makes none of them."""
    return [replace(call, is_cached=True) for call in calls]
