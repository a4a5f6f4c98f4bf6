"""Before an evaluation: which of its calls are kept already, found by running some of its cases without any model."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from evolution.loop.call_keys import write_request
from evolution.loop.kept_calls import Ledger
from evolution.loop.scoring import Scorer, score_case
from evolution.models import DatasetCase, Evaluation
from evolution.ports import NamedModel
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest
from harness_repo.runtime.native import NativeRunner
from harness_repo.runtime.simulated_user import is_conversation

# At once; each takes a little memory and no call.
AT_ONCE = 20


@dataclass
class DryPair:
    """How far one (case, repeat) came."""

    # role -> calls whose answers are kept
    kept: dict[str, int] = field(default_factory=dict)
    # role -> bytes of the request that nobody has the answer to; the run ended there, or went on with a stand-in
    missed: dict[str, int] = field(default_factory=dict)
    is_conversation: bool = False

    def asks(self, role: str) -> bool:
        """Whether a pair of this kind asks the role at all."""
        return role != "user" or self.is_conversation


class _Nobody:
    """A model that is never asked: it notes what it would have been asked first, and has no answer to it."""

    def __init__(self, role: str, named: NamedModel, missed: dict[str, int], stand_in: str | None) -> None:
        # The key of a call depends on them.
        self.identity: str = getattr(named.model, "identity", "")
        self.seeds: bool = getattr(named.model, "seeds", True)
        self._role = role
        self._missed = missed
        self._stand_in = stand_in

    async def complete(self, request: ChatRequest) -> ChatReply:
        self._missed.setdefault(self._role, len(write_request(request)))
        if self._stand_in is None:
            raise ChatError("no such call has been kept", "budget")
        return ChatReply(self._stand_in)


async def run_dry(
    evaluation: Evaluation,
    scorer: Scorer,
    pairs: Sequence[tuple[DatasetCase, int]],
    *,
    stand_in: str | None = None,
) -> list[DryPair]:
    """Run these pairs of an evaluation, which need not be stored, on kept answers alone; nothing is written.

    The models of `scorer` are never asked, and tools answer from fixtures. A pair ends with the first call that has no
    kept answer; with a `stand_in`, that is the answer to such calls, so that those after it can be looked at.
    """
    places = asyncio.Semaphore(AT_ONCE)

    async def run(case: DatasetCase, repeat: int) -> DryPair:
        pair = DryPair(is_conversation=is_conversation(case.request))
        ledger = Ledger(evaluation)

        def stand_for(role: str, named: NamedModel) -> NamedModel:
            return ledger.wrap(role, NamedModel(_Nobody(role, named, pair.missed, stand_in), named.name))

        async with places:
            await score_case(case, replace(_recast(scorer, stand_for), ledger=ledger), repeat)
        pair.kept = {role: use.cached for role, use in ledger.take().usage.items()}
        return pair

    return await asyncio.gather(*(run(case, repeat) for case, repeat in pairs))


def _recast(scorer: Scorer, stand_for: Callable[[str, NamedModel], NamedModel]) -> Scorer:
    """The same with another model for each role."""
    runner = scorer.runner
    if isinstance(runner, NativeRunner):
        policy = stand_for("policy", NamedModel(runner.model, runner.model_name))
        runner = replace(runner, model=policy.model)
    user = stand_for("user", scorer.user) if scorer.user else None
    return replace(scorer, runner=runner, judge_model=stand_for("judge", scorer.judge_model), user=user)
