"""Answers the tool calls of one turn: hooks before, the calls themselves all together, hooks after.

Whatever goes wrong with a call is told to the model as its answer, and recorded; it never ends the run by itself.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness_repo.format.tools import LOAD_SKILL
from harness_repo.runtime.chat import ToolCall
from harness_repo.runtime.hooks import HookFiring
from harness_repo.runtime.run import Run
from harness_repo.runtime.sandbox import Prepared, ToolOutcome, ToolSandbox, parse_arguments

# However many skills there are.
MOST_LOADS = 1000


@dataclass
class _Step:
    """One call of the turn on its way to an outcome."""

    call: ToolCall
    # Parsed, or the text as the model wrote it.
    arguments: object
    firings: list[HookFiring] = field(default_factory=list)
    # What still has to go out to the world.
    prepared: Prepared | None = None
    outcome: ToolOutcome | None = None
    is_recorded: bool = False

    @property
    def tool(self) -> dict[str, Any]:
        """The call as hooks see it."""
        return {"name": self.call.name, "arguments": self.arguments}


async def answer_calls(run: Run, sandbox: ToolSandbox, calls: Sequence[ToolCall]) -> bool:
    """Answer all calls of a turn, and say whether the run is over: a hook blocks it, or there were too many calls.

    Hooks and messages keep the order of the calls. When the run is cut off in between, what was answered stays and
    the rest is answered as "cut_off", so that every call of the trajectory has an answer.
    """
    steps = [_Step(call, read_arguments(call)) for call in calls]
    began = time.monotonic()
    try:
        is_over = _begin_all(run, sandbox, steps)
        await _perform_all(run, sandbox, steps, is_over=is_over)
        for step in steps:
            _finish(run, step)
    finally:
        ms = round((time.monotonic() - began) * 1000, 2)
        for step in steps:
            if not step.is_recorded:
                _record(run, step, step.outcome or ToolOutcome(None, "cut_off: the run ended before", ms))
    return end_if_blocked(run, (firing for step in steps for firing in step.firings)) or is_over


def refuse_calls(run: Run, calls: Iterable[ToolCall], error: str) -> None:
    """Answer calls that are not made with an error."""
    for call in calls:
        _record(run, _Step(call, read_arguments(call)), ToolOutcome(None, error, 0.0))


def end_if_blocked(run: Run, firings: Iterable[HookFiring]) -> bool:
    """End the run if one of the firings blocks it, and say so; the first one has the word."""
    block = next((firing for firing in firings if firing.outcome == "block"), None)
    if block is not None:
        run.end("blocked", reply=block.reply, error=f"{block.hook}: {block.record}")
    return block is not None


def read_arguments(call: ToolCall) -> object:
    """The arguments as an object, or the text as the model wrote it."""
    try:
        return parse_arguments(call.arguments)
    except ValueError:
        return call.arguments


def _begin_all(run: Run, sandbox: ToolSandbox, steps: Sequence[_Step]) -> bool:
    """Hooks, and all that needs no waiting, call by call; say whether the run is over already."""
    most = {False: run.harness.limits.tool_calls, True: most_loads(run)}
    used = Counter(_is_load(run, record.name) for record in run.tool_calls)
    is_over = False
    for number, step in enumerate(steps):
        is_load = _is_load(run, step.call.name)
        used[is_load] += 1
        if used[is_load] > most[is_load]:
            step.outcome = ToolOutcome(None, f"limit: at most {most[is_load]} calls", 0.0)
            what = LOAD_SKILL if is_load else "tool"
            run.end("tool_call_limit", error=f"more than {most[is_load]} {what} calls")
            is_over = True
            continue
        _begin(run, sandbox, step, [earlier.tool for earlier in steps[:number]])
        is_over = is_over or any(firing.outcome == "block" for firing in step.firings)
    return is_over


def _is_load(run: Run, name: str) -> bool:
    """Whether a call is of the runtime's own tool, which is there when there are skills."""
    return name == LOAD_SKILL and bool(run.harness.skills)


def most_loads(run: Run) -> int:
    """Calls of load_skill in a run: each skill twice, and some more, is all that anybody needs."""
    return min(2 * len(run.harness.skills) + 20, MOST_LOADS)


def _begin(run: Run, sandbox: ToolSandbox, step: _Step, earlier: list[dict[str, Any]]) -> None:
    if isinstance(step.arguments, dict):
        step.firings = run.fire("tool_call", tool=step.tool, pending=earlier)
    step.outcome = _refusal(step.firings)
    if step.outcome is None and _is_load(run, step.call.name):
        step.outcome = _load_skill(run, step.arguments)
    if step.outcome is not None:
        return
    what = f"checking the arguments of {step.call.name}"
    prepared = run.computing.spend(what, sandbox.prepare, step.call.name, step.call.arguments)
    if isinstance(prepared, ToolOutcome):
        step.outcome = prepared
    else:
        step.prepared = prepared


async def _perform_all(run: Run, sandbox: ToolSandbox, steps: Sequence[_Step], *, is_over: bool) -> None:
    """Make the calls that go out to the world, together; none when the run is over anyway."""

    async def perform(step: _Step, prepared: Prepared) -> None:
        step.outcome = await sandbox.perform(prepared, run.computing)

    waiting = [(step, step.prepared) for step in steps if step.prepared is not None]
    if is_over:
        for step, _ in waiting:
            step.outcome = ToolOutcome(None, "not_made: the run is over", 0.0)
        return
    failures = await asyncio.gather(*(perform(*pair) for pair in waiting), return_exceptions=True)
    for failure in failures:
        if failure is not None:
            raise failure


def _finish(run: Run, step: _Step) -> None:
    """Hooks over the result, and the record."""
    outcome = step.outcome or ToolOutcome(None, "not_made", 0.0)
    if outcome.error is None:
        after = run.fire("tool_result", tool=step.tool, result=outcome.result)
        step.firings = [*step.firings, *after]
        refusal = _refusal(after)
        outcome = replace(outcome, error=refusal.error) if refusal else outcome
    _record(run, step, outcome)


def _record(run: Run, step: _Step, outcome: ToolOutcome) -> None:
    step.is_recorded = True
    run.add_outcome(step.call, step.arguments, outcome, _skill_body(run, step))


def _refusal(firings: Iterable[HookFiring]) -> ToolOutcome | None:
    """What a hook that fails makes of a tool call: an error that the model is told."""
    failed = next((firing for firing in firings if firing.outcome in ("retry", "block")), None)
    return ToolOutcome(None, f"refused: {failed.message}", 0.0) if failed else None


def _load_skill(run: Run, arguments: object) -> ToolOutcome:
    """The runtime's own tool: note that a skill is loaded."""
    skills = run.harness.skills
    name = arguments.get("name") if isinstance(arguments, dict) else None
    if not isinstance(name, str):
        return ToolOutcome(None, "bad_arguments: name is missing", 0.0)
    if name not in skills:
        return ToolOutcome(None, f"unknown_skill: there is {', '.join(sorted(skills))}", 0.0)
    if name not in run.skills_loaded:
        run.skills_loaded.append(name)
    return ToolOutcome({"loaded": name}, None, 0.0)


def _skill_body(run: Run, step: _Step) -> str | None:
    """What load_skill shows the model: the body as it stands."""
    if step.call.name != LOAD_SKILL or not isinstance(step.arguments, dict):
        return None
    skill = run.harness.skills.get(str(step.arguments.get("name")))
    return skill.body if skill else None
