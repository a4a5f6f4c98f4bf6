"""Inside an evaluation: one case is answered by the agent and scored by the judge. Pure async; no records written.

A reply that a limit or a hook left behind is judged like any other (a hook_limit's too,
though hooks refused it); only where there is nothing to judge, or no
valid judgement, the outcome is an error, which is never a score.
"""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from evolution.loop.judging import VerdictReader, judge_variables
from evolution.loop.kept_calls import Ledger
from evolution.loop.outcomes import (
    JUDGE_ERROR,
    JUDGE_OUTPUT,
    LONGEST_ERROR,
    POLICY_ERROR,
    RETRYABLE_KINDS,
    USER_ERROR,
    CaseOutcome,
    describe,
    judgement_fields,
    kind_of_judgement,
    run_fields,
    shorten,
)
from evolution.loop.stored_answers import NoAnswer, StoredAnswers
from evolution.models import DatasetCase
from evolution.ports import NamedModel
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.runtime.agent import run_agent
from harness_repo.runtime.computing import Allowance, TooMuchComputing
from harness_repo.runtime.conversation import run_conversation
from harness_repo.runtime.native import NativeRunner
from harness_repo.runtime.runner import RunCase, Runner
from harness_repo.runtime.simulated_user import is_conversation
from harness_repo.runtime.trajectory import CallRecord, Trajectory

__all__ = [
    "LONGEST_ERROR",
    "RETRYABLE_KINDS",
    "CaseOutcome",
    "Scorer",
    "case_seed",
    "score_case",
]


@dataclass(frozen=True)
class Scorer:
    """The agent of an evaluation, its judge with the model that drives it, and what is the same for every case."""

    runner: Runner
    judge: HarnessState
    judge_model: NamedModel
    # Plays the user of conversation cases; None where there are none.
    user: NamedModel | None = None
    # The version that is measured.
    commit: str = ""
    # Strike tool calls after the faults of the case itself; see harness_repo.runtime.faults.
    faults: tuple[Mapping[str, Any], ...] = ()
    # Keeps the answers of the models above; None where nobody does.
    ledger: Ledger | None = None

    # Cases of an evaluation that should be under way at once, over all workers, where nobody says; 0 is the setting.
    cases_at_once: int = 0

    def connections(self) -> list[AbstractAsyncContextManager[Any]]:
        """What keeps connections open for as long as it is entered, each once."""
        parts: list[Any] = [self.runner, self.judge_model.model]
        if isinstance(self.runner, NativeRunner):
            parts.append(self.runner.model)
        if self.user is not None:
            parts.append(self.user.model)
        unique = {id(part): part for part in parts}.values()
        return [part for part in unique if isinstance(part, AbstractAsyncContextManager)]

    @property
    def model_name(self) -> str:
        """The agent's model as its requests name it; "" for an agent that is not ours."""
        return self.runner.model_name if isinstance(self.runner, NativeRunner | StoredAnswers) else ""

    @property
    def user_name(self) -> str:
        """The simulated user's model as its requests name it; "" where there is none."""
        if isinstance(self.runner, StoredAnswers):
            return self.runner.user_name
        return self.user.name if self.user else ""

    def forget(self, calls: Iterable[CallRecord]) -> None:
        """Keep the answers to these calls no longer: they are of no use, and are to be asked for again."""
        if self.ledger is not None:
            self.ledger.forget([call.cache_key for call in calls if call.cache_key])


async def score_case(case: DatasetCase, scorer: Scorer, repeat: int = 0) -> CaseOutcome:
    """Answer and judge one case; whatever goes wrong is in the outcome, and nothing is raised."""
    # One case that can't be run or judged says so on its result; the others go on.
    try:
        answered = await _answer(_run_case(case, scorer, repeat), scorer)
        outcome = CaseOutcome(**run_fields(answered, scorer.model_name, scorer.user_name))
    except NoAnswer as failure:
        return CaseOutcome(error_kind=failure.kind, error=shorten(str(failure)))
    except Exception as failure:  # noqa: BLE001
        return CaseOutcome(error_kind=POLICY_ERROR, error=describe(failure))
    if outcome.error_kind:
        if outcome.error_kind == USER_ERROR:
            scorer.forget(answered.user_calls)
        return outcome
    try:
        return await _judge(case, answered, scorer, repeat, outcome)
    except Exception as failure:  # noqa: BLE001
        return replace(outcome, error_kind=JUDGE_ERROR, error=describe(failure))


def case_seed(case_key: str, repeat: int) -> int:
    """The seed of one (case, repeat), 31 bits: the same in every evaluation, so that two of them can be paired."""
    digest = hashlib.sha256(f"{case_key}\n{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _run_case(case: DatasetCase, scorer: Scorer, repeat: int) -> RunCase:
    """What the agent is given: never what a right answer states."""
    return RunCase(
        key=case.key,
        request=case.request,
        context=case.context,
        fixtures=case.fixtures,
        faults=(*case.faults, *scorer.faults),
        commit=scorer.commit,
        repeat=repeat,
        seed=case_seed(case.key, repeat),
    )


async def _answer(case: RunCase, scorer: Scorer) -> Trajectory:
    """The agent's run, or its conversation with the simulated user; what is stored holds the conversation already."""
    if isinstance(scorer.runner, StoredAnswers) or not is_conversation(case.request):
        return await scorer.runner.run(case)
    if scorer.user is None:
        return Trajectory("user_error", None, error="no model plays the user")
    return await run_conversation(scorer.runner.run, case, scorer.user.model, scorer.user.name)


async def _judge(
    case: DatasetCase, answered: Trajectory, scorer: Scorer, repeat: int, before: CaseOutcome
) -> CaseOutcome:
    """The outcome with the judgement in it, or with the judge's error."""
    reader = VerdictReader(scorer.judge)
    judged = await run_agent(
        scorer.judge,
        judge_variables(case, answered),
        scorer.judge_model.model,
        model_name=scorer.judge_model.name,
        repeat=repeat,
        check=reader.check,
    )
    judgement = judgement_fields(judged, scorer.judge_model.name, before)
    outcome = replace(before, **judgement, **_read_verdict(judged, reader))
    if outcome.error_kind == JUDGE_OUTPUT:
        scorer.forget(judged.calls)
    return outcome


def _read_verdict(judged: Trajectory, reader: VerdictReader) -> dict[str, Any]:
    """The fields of the scores, or those of the error."""
    kind = kind_of_judgement(judged)
    if kind:
        text = judged.error or f"the judge gave no reply: {judged.status}"
        return {"error_kind": kind, "error": shorten(text)}
    try:
        return Allowance().spend("reading the judge's reply", reader.scores, judged.reply or "")
    except (ValueError, TooMuchComputing) as failure:
        return {"error_kind": JUDGE_OUTPUT, "error": shorten(str(failure))}
