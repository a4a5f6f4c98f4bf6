"""The agent loop: prompt, model, skills, tools and hooks under limits, until there is a reply.

It knows nothing of evaluations or judges: what it gives back is a trajectory.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness_repo.format.harness import Harness
from harness_repo.format.templates import variables_of
from harness_repo.runtime.calling import answer_calls, end_if_blocked, refuse_calls
from harness_repo.runtime.chat import ChatError, ChatModel, ChatReply, ChatRequest, ToolCall
from harness_repo.runtime.computing import TooMuchComputing
from harness_repo.runtime.prompt import PromptError, assemble_prompt, skill_index
from harness_repo.runtime.reply import extract_reply, split_reasoning
from harness_repo.runtime.run import Run
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.runtime.texts import NOT_OF_USE, load_skill_definition, retry_message
from harness_repo.runtime.trajectory import HookRecord, Trajectory
from harness_repo.runtime.waiting import counting_on

# What whoever runs an agent finds wrong with a reply, None when it is of use.
ReplyCheck = Callable[[str], str | None]
# What it goes by among the hooks.
REPLY_CHECK = "reply_check"

# A model that asks for more is beside itself; the others are not even kept.
MOST_CALLS_OF_A_TURN = 256


async def run_agent(
    harness: Harness,
    variables: Mapping[str, Any],
    model: ChatModel,
    *,
    model_name: str,
    sandbox: ToolSandbox | None = None,
    repeat: int = 0,
    check: ReplyCheck | None = None,
) -> Trajectory:
    """Run the harness once over `variables` and return what happened; nothing is raised.

    Without a sandbox every tool answers "not_found". `repeat` says which of several trials of the same this is. A
    reply that passes the hooks and not the `check` is asked for again as a hook would have it: within the harness's
    `hook_retries`, or once where it has none, and with a turn more where the turns are used up.

    Status "model_error" means that no reply could be had: `error_kind` is the ChatError's, or "configuration" when
    the prompt cannot be assembled; that is a time limit's too, when the harness computed too long. Whatever else a
    model, a tool or a library raises is "runner_error".
    """
    run = Run(harness, variables)
    sandbox = sandbox or ToolSandbox(harness.tools, {})
    loop = _Loop(run, model, model_name, sandbox, repeat=repeat, check=check)
    clock = asyncio.timeout(harness.limits.seconds)
    try:
        async with clock:
            run.start(run.computing.spend("the prompt", assemble_prompt, harness, variables))
            with counting_on(clock):
                await loop.go()
    except TimeoutError:
        if not clock.expired():
            raise
        run.end("time_limit", error=f"not done after {harness.limits.seconds} seconds")
    except TooMuchComputing as failure:
        run.end("time_limit", error=str(failure), kind="configuration")
    except PromptError as failure:
        run.end("model_error", error=str(failure), kind="configuration")
    except ChatError as failure:
        run.end("model_error", error=str(failure), kind=failure.kind)
    # What had happened until then is worth as much as in any other run.
    except Exception as failure:  # noqa: BLE001
        run.end("runner_error", error=f"{type(failure).__name__}: {failure}")
    return run.trajectory()


class _Loop:
    """One run's turns; each step says whether the run is over."""

    def __init__(
        self,
        run: Run,
        model: ChatModel,
        model_name: str,
        sandbox: ToolSandbox,
        *,
        repeat: int,
        check: ReplyCheck | None,
    ) -> None:
        self._run = run
        self._harness = run.harness
        self._model = model
        self._model_name = model_name
        self._sandbox = sandbox
        self._repeat = repeat
        self._check = check
        # Turns beyond the harness's limit, for a reply that the check did not pass.
        self._more_turns = 0
        self._tools = tool_definitions(run.harness)
        # Of the turn, with those that are not kept.
        self._asked = 0

    async def go(self) -> None:
        """Turn by turn until something ends the run."""
        if end_if_blocked(self._run, self._run.fire("input")):
            return
        while self._run.turn < self._harness.limits.turns + self._more_turns:
            self._run.turn += 1
            reply = await self._ask()
            is_over = await self._answer(reply.tool_calls) if reply.tool_calls else self._settle(reply)
            if is_over or self._is_out_of_tokens():
                return
        self._run.end("turn_limit", error=f"no reply after {self._harness.limits.turns} turns")

    async def _ask(self) -> ChatReply:
        reply = await self._model.complete(
            ChatRequest(
                model=self._model_name,
                messages=list(self._run.messages),
                tools=list(self._tools),
                response_schema=_response_schema(self._harness),
                parameters=dict(self._harness.model),
                repeat=self._repeat,
            )
        )
        reasoning, content = split_reasoning(reply)
        self._asked = len(reply.tool_calls)
        calls = self._run.name_calls(reply.tool_calls[:MOST_CALLS_OF_A_TURN])
        if calls or content != reply.content:
            reply = replace(reply, content=content, tool_calls=calls)
        self._run.add_reply(reply, reasoning)
        return reply

    async def _answer(self, calls: Sequence[ToolCall]) -> bool:
        """Answer the calls of a turn; without tokens for a turn after it, there is no use in making them."""
        if self._is_out_of_tokens():
            refuse_calls(self._run, calls, f"limit: at most {self._harness.limits.tokens} tokens")
            return True
        # A model that answers at once, and tools that never wait, would leave the clock no moment to strike.
        await asyncio.sleep(0)
        if self._asked > len(calls):
            refuse_calls(self._run, calls, f"limit: at most {len(calls)} calls in one turn")
            self._run.end("tool_call_limit", error=f"{self._asked} tool calls in one turn")
            return True
        return await answer_calls(self._run, self._sandbox, calls)

    def _is_out_of_tokens(self) -> bool:
        """End the run if no further model call may be made, and say so."""
        most = self._harness.limits.tokens
        if most is None or self._run.tokens < most:
            return False
        self._run.end("token_limit", error=f"{self._run.tokens} tokens, at most {most}")
        return True

    def _settle(self, reply: ChatReply) -> bool:
        """Check a proposed reply: take it, end the run, or ask for another one."""
        text = extract_reply(reply.content, as_json=self._harness.reply_schema is not None)
        firings = self._run.fire("reply", reply=text)
        if end_if_blocked(self._run, firings):
            return True
        rewritten = [firing.reply for firing in firings if firing.outcome == "rewrite"]
        self._run.reply = rewritten[-1] if rewritten else text
        refused = [firing.message for firing in firings if firing.outcome == "retry"]
        wrong = self._find_wrong()
        if not refused and wrong is None:
            self._run.end("ok")
            return True
        return self._ask_again(refused or [NOT_OF_USE.format(detail=wrong)], is_of_use=wrong is None)

    def _find_wrong(self) -> str | None:
        """What the caller has against the reply that the hooks have left."""
        if self._check is None:
            return None
        wrong = self._run.computing.spend("checking the reply", self._check, self._run.reply or "")
        if wrong is not None:
            self._run.hooks.append(HookRecord(self._run.turn, "reply", REPLY_CHECK, "retry", wrong))
        return wrong

    def _ask_again(self, refused: Sequence[str], *, is_of_use: bool) -> bool:
        """Tell the model what is wrong with its reply, unless it was told often enough; say whether the run is over."""
        limits = self._harness.limits
        if self._run.retries >= (limits.hook_retries if is_of_use else max(limits.hook_retries, 1)):
            self._run.end("hook_limit", error="; ".join(refused))
            return True
        self._run.retries += 1
        if not is_of_use and self._run.turn >= limits.turns:
            self._more_turns = 1
        self._run.messages.append({"role": "user", "content": retry_message(refused)})
        return False


def tool_definitions(harness: Harness) -> list[dict[str, Any]]:
    """The tools as the model is offered them: load_skill if there are skills, then the harness's by name."""
    tools: list[dict[str, Any]] = [tool.definition() for _, tool in sorted(harness.tools.items())]
    if not harness.skills:
        return tools
    shown = any("skills" in variables_of(section.template) for section in harness.prompt)
    return [load_skill_definition(skill_index(harness), shown=shown), *tools]


def _response_schema(harness: Harness) -> dict[str, Any] | None:
    if harness.reply_schema is None:
        return None
    return {"name": f"{harness.name or 'harness'}_reply", "schema": harness.reply_schema}
