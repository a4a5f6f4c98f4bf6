"""A conversation case: a simulated user and an agent in turns, and one trajectory of it all.

The agent is anything that answers a RunCase, so one that is not ours converses too. It is run anew for every line,
with what was said before as history.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness_repo.runtime.chat import ChatError, ChatModel, Message
from harness_repo.runtime.completing import complete_run
from harness_repo.runtime.context import normalise_request
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.simulated_user import SimulatedUser, read_profile
from harness_repo.runtime.trajectory import Exchange, Status, Trajectory, join_runs

Answer = Callable[[RunCase], Awaitable[Trajectory]]

# With these the viewer was shown a reply that the agent stands by, and may go on.
_GOES_ON = ("ok", "blocked")


async def run_conversation(
    answer: Answer, case: RunCase, user_model: ChatModel, user_name: str
) -> Trajectory:
    """Let a simulated user and the agent talk until the user is done, an agent's run fails, or turns run out.

    `answer` is a runner's `run`; `user_name` is the user's model as its endpoint knows it. The result holds all runs
    with their turns numbered through, and the exchanges in `conversation`. Its status is the last run's;
    "turn_limit" when the user was not done; "user_error" when the user's model failed, or the case's user is none.
    """
    try:
        profile = read_profile(case.request)
        opening = normalise_request(case.request)
    except ValueError as failure:
        return Trajectory("user_error", None, error=str(failure), error_kind="case")
    user = SimulatedUser(profile, user_model, user_name, case.seed, case.repeat)
    talk = _Talk(answer, case, user, [dict(turn) for turn in opening.history])
    try:
        await talk.go([{"user": item.user, "text": item.text} for item in opening.danmaku])
    except ChatError as failure:
        talk.end("user_error", f"the simulated user: {failure}", failure.kind)
    return talk.trajectory()


@dataclass
class _Talk:
    """One conversation as it grows."""

    answer: Answer
    case: RunCase
    user: SimulatedUser
    history: list[Message]
    runs: list[Trajectory] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    status: Status = "ok"
    error: str | None = None
    error_kind: str | None = None

    def end(self, status: Status, error: str | None, kind: str | None = None) -> None:
        """Note how the conversation ended."""
        self.status, self.error, self.error_kind = status, error, kind

    async def go(self, danmaku: list[dict[str, str]]) -> None:
        """Exchange by exchange; `danmaku` is what the case has the user say first, if anything."""
        name = danmaku[0]["user"] if danmaku else ""
        if danmaku:
            self.user.note_line(_said(danmaku))
        else:
            danmaku = await self._first_line()
        for _ in range(self.user.profile.turns):
            if not await self._exchange(danmaku):
                return
            line = await self.user.speak()
            if line.done:
                self._part(line.say, "done")
                return
            danmaku = [{"user": name, "text": line.say}]
        self._part(_said(danmaku), "turn_limit")
        self.end("turn_limit", f"the user was not done after {self.user.profile.turns} replies")

    async def _first_line(self) -> list[dict[str, str]]:
        line = await self.user.speak()
        if line.done:
            raise ChatError("it left before it said anything", "bad_response")
        return [{"user": "", "text": line.say}]

    async def _exchange(self, danmaku: list[dict[str, str]]) -> bool:
        """Have the agent reply; say whether the conversation can go on."""
        said = _said(danmaku)
        run = await self.answer(self._next_case(danmaku))
        self.runs.append(complete_run(run, said))
        self.exchanges.append(Exchange(said, run.reply, run.status))
        self.end(run.status, run.error, run.error_kind)
        if run.status not in _GOES_ON or run.reply is None:
            return False
        self.history += [{"role": "user", "content": said}, {"role": "assistant", "content": run.reply}]
        self.user.note_reply(run.reply)
        return True

    def _next_case(self, danmaku: list[dict[str, str]]) -> RunCase:
        """The case as the agent is given it now: no user, what was said as history, and a seed of its own."""
        rest: Mapping[str, Any] = {name: value for name, value in self.case.request.items() if name != "user"}
        request = {**rest, "danmaku": danmaku, "history": list(self.history)}
        return replace(self.case, request=request, seed=self.case.seed + len(self.runs))

    def _part(self, say: str, status: str) -> None:
        """Keep a last line of the user that the agent is not asked to answer."""
        if say:
            self.exchanges.append(Exchange(say, None, status))

    def trajectory(self) -> Trajectory:
        """All runs as one."""
        replies = [run.reply for run in self.runs if run.reply is not None]
        return replace(
            join_runs(self.runs),
            status=self.status,
            reply=replies[-1] if replies else None,
            error=self.error,
            error_kind=self.error_kind,
            conversation=self.exchanges,
            user_calls=self.user.calls,
        )


def _said(danmaku: list[dict[str, str]]) -> str:
    return "\n".join(item["text"] for item in danmaku)
