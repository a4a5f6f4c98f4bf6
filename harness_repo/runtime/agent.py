"""The agent loop: prompt, model, skills, tools and hooks under limits, until there is a reply.

It knows nothing of evaluations or judges: what it gives back is a trajectory.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness_repo.harness import Harness
from harness_repo.prompts import variables_of
from harness_repo.runtime.chat import ChatError, ChatModel, ChatReply, ChatRequest, ToolCall
from harness_repo.runtime.computing import TooMuchComputing
from harness_repo.runtime.hooks import HookFiring
from harness_repo.runtime.prompt import PromptError, assemble_prompt, skill_index
from harness_repo.runtime.reply import extract_reply
from harness_repo.runtime.run import Run
from harness_repo.runtime.sandbox import ToolOutcome, ToolSandbox, parse_arguments
from harness_repo.runtime.texts import load_skill_definition, retry_message
from harness_repo.runtime.trajectory import Trajectory
from harness_repo.tools import LOAD_SKILL


async def run_agent(
    harness: Harness,
    variables: Mapping[str, Any],
    model: ChatModel,
    *,
    model_name: str,
    sandbox: ToolSandbox | None = None,
) -> Trajectory:
    """Run the harness once over `variables` and return what happened; limits and model failures never raise.

    Without a sandbox every tool answers "not_found". Status "model_error" means that no reply could be had:
    `error_kind` is the ChatError's, or "configuration" when the prompt cannot be assembled.
    """
    run = Run(harness, variables)
    loop = _Loop(run, model, model_name, sandbox or ToolSandbox(harness.tools, {}))
    clock = asyncio.timeout(harness.limits.seconds)
    try:
        async with clock:
            run.start(run.computing.spend("the prompt", assemble_prompt, harness, variables))
            await loop.go()
    except TimeoutError:
        if not clock.expired():
            raise
        run.end("time_limit", error=f"not done after {harness.limits.seconds} seconds")
    except TooMuchComputing as failure:
        run.end("time_limit", error=str(failure))
    except PromptError as failure:
        run.end("model_error", error=str(failure), kind="configuration")
    except ChatError as failure:
        run.end("model_error", error=str(failure), kind=failure.kind)
    return run.trajectory()


class _Loop:
    """One run's turns; each step says whether the run is over."""

    def __init__(self, run: Run, model: ChatModel, model_name: str, sandbox: ToolSandbox) -> None:
        self._run = run
        self._harness = run.harness
        self._model = model
        self._model_name = model_name
        self._sandbox = sandbox
        self._tools = tool_definitions(run.harness)

    async def go(self) -> None:
        """Turn by turn until something ends the run."""
        if self._is_blocked(self._run.fire("input")):
            return
        for turn in range(1, self._harness.limits.turns + 1):
            self._run.turn = turn
            reply = await self._ask()
            is_over = self._answer_calls(reply.tool_calls) if reply.tool_calls else self._settle(reply)
            if is_over:
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
            )
        )
        reply = replace(reply, tool_calls=_with_ids(reply.tool_calls, self._run.turn))
        self._run.add_reply(reply)
        return reply

    def _answer_calls(self, calls: Sequence[ToolCall]) -> bool:
        """Answer all calls of a turn, so that the messages stay whole, then see whether the run is over."""
        is_blocked = False
        for call in calls:
            if self._is_over_limit(call):
                most = self._harness.limits.tool_calls
                self._run.add_outcome(
                    call, _arguments(call), ToolOutcome(None, f"limit: at most {most} calls", 0.0)
                )
                self._run.end("tool_call_limit", error=f"more than {most} tool calls")
            else:
                is_blocked = self._answer(call) or is_blocked
        return is_blocked or self._run.status == "tool_call_limit"

    def _is_over_limit(self, call: ToolCall) -> bool:
        used = sum(record.name != LOAD_SKILL for record in self._run.tool_calls)
        return call.name != LOAD_SKILL and used >= self._harness.limits.tool_calls

    def _answer(self, call: ToolCall) -> bool:
        """Answer one call between its two hooks; say whether one of them blocks the run."""
        arguments = _arguments(call)
        tool = {"name": call.name, "arguments": arguments}
        before = self._run.fire("tool_call", tool=tool) if isinstance(arguments, dict) else []
        outcome = _refusal(before) or self._call(call, arguments)
        after = (
            self._run.fire("tool_result", tool=tool, result=outcome.result) if outcome.error is None else []
        )
        refusal = _refusal(after)
        if refusal is not None:
            outcome = replace(outcome, error=refusal.error)
        self._run.add_outcome(call, arguments, outcome, self._skill_body(call, arguments))
        return self._is_blocked([*before, *after])

    def _call(self, call: ToolCall, arguments: object) -> ToolOutcome:
        if call.name != LOAD_SKILL or not self._harness.skills:
            what = f"checking the arguments of {call.name}"
            return self._run.computing.spend(what, self._sandbox.call, call.name, call.arguments)
        name = arguments.get("name") if isinstance(arguments, dict) else None
        if not isinstance(name, str):
            return ToolOutcome(None, "bad_arguments: name is missing", 0.0)
        if name not in self._harness.skills:
            return ToolOutcome(
                None, f"unknown_skill: there is {', '.join(sorted(self._harness.skills))}", 0.0
            )
        if name not in self._run.skills_loaded:
            self._run.skills_loaded.append(name)
        return ToolOutcome({"loaded": name}, None, 0.0)

    def _skill_body(self, call: ToolCall, arguments: object) -> str | None:
        """What load_skill shows the model: the body as it stands."""
        if call.name != LOAD_SKILL or not isinstance(arguments, dict):
            return None
        skill = self._harness.skills.get(str(arguments.get("name")))
        return skill.body if skill else None

    def _settle(self, reply: ChatReply) -> bool:
        """Check a proposed reply: take it, end the run, or ask for another one."""
        text = extract_reply(reply.content, as_json=self._harness.reply_schema is not None)
        firings = self._run.fire("reply", reply=text)
        if self._is_blocked(firings):
            return True
        rewritten = [firing.reply for firing in firings if firing.outcome == "rewrite"]
        self._run.reply = rewritten[-1] if rewritten else text
        refused = [firing.message for firing in firings if firing.outcome == "retry"]
        if not refused:
            self._run.end("ok")
            return True
        if self._run.retries >= self._harness.limits.hook_retries:
            self._run.end("hook_limit", error="; ".join(refused))
            return True
        self._run.retries += 1
        self._run.messages.append({"role": "user", "content": retry_message(refused)})
        return False

    def _is_blocked(self, firings: Sequence[HookFiring]) -> bool:
        block = next((firing for firing in firings if firing.outcome == "block"), None)
        if block is not None:
            self._run.end("blocked", reply=block.reply, error=f"{block.hook}: {block.record}")
        return block is not None


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


def _arguments(call: ToolCall) -> object:
    """The arguments as an object, or the text as the model wrote it."""
    try:
        return parse_arguments(call.arguments)
    except ValueError:
        return call.arguments


def _refusal(firings: Sequence[HookFiring]) -> ToolOutcome | None:
    """What a hook that fails makes of a tool call: an error that the model is told."""
    failed = next((firing for firing in firings if firing.outcome in ("retry", "block")), None)
    return ToolOutcome(None, f"refused: {failed.message}", 0.0) if failed else None


def _with_ids(calls: Sequence[ToolCall], turn: int) -> list[ToolCall]:
    """Calls that some servers send without an id get one."""
    return [
        call if call.id else replace(call, id=f"call_{turn}_{number}") for number, call in enumerate(calls, 1)
    ]
