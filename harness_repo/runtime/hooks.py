"""Runs the hooks of an event, the runtime's own first, then the harness's in path order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_repo.format.harness import Harness
from harness_repo.format.hooks import Hook, OnFail
from harness_repo.format.patterns import PatternError, substitute
from harness_repo.runtime import texts
from harness_repo.runtime.checks import CheckError, applies, run_check
from harness_repo.runtime.computing import OutOfTime

NOT_EVALUATED = "the hook could not be evaluated"

# Every variable that an expression can name, so that none is ever undeclared.
EMPTY_PAYLOAD: dict[str, Any] = {
    "turn": 0,
    "request": {},
    "danmaku": [],
    "prompt": "",
    "skills_loaded": [],
    "tool_calls": [],
    "tool": {},
    "result": None,
    "reply": "",
}


@dataclass(frozen=True)
class HookFiring:
    """One hook that was evaluated: "pass", or the action it asks for."""

    hook: str
    event: str
    outcome: str
    # What is told: to the model on retry.
    message: str = ""
    # What the check found, for people.
    detail: str = ""
    # The text that replaces the reply, on rewrite and block.
    reply: str | None = None

    @property
    def record(self) -> str:
        """Message and detail in one line."""
        return " ".join(part for part in (self.message, f"({self.detail})" if self.detail else "") if part)


def run_hooks(harness: Harness, event: str, payload: Mapping[str, Any]) -> list[HookFiring]:
    """Evaluate the hooks of an event over `payload`, whose names are those of EMPTY_PAYLOAD.

    A rewrite changes the reply that the later hooks see; those before the last one look at it again, but for rewrites,
    and what fails then is added. A hook whose `when` is false does not fire. One that cannot be evaluated, by an error
    of its expression or a time-out of its pattern, says why: it blocks if that is its action, else it warns.
    """
    seen = {**EMPTY_PAYLOAD, **payload}
    firings: list[HookFiring] = []
    before: list[Hook] = []
    hooks = [hook for hook in (*builtin_hooks(harness), *harness.hooks) if hook.event == event]
    for number, hook in enumerate(hooks):
        firing = _evaluate(hook, seen, harness)
        if firing is None:
            continue
        firings.append(firing)
        if firing.outcome == "rewrite":
            seen["reply"] = firing.reply
            before = hooks[:number]
    return [*firings, *_failures_again(before, seen, harness, firings)]


def builtin_hooks(harness: Harness) -> list[Hook]:
    """Rules without a file: a reply is not empty, rests on a reply skill, and fits the reply schema."""
    retry = [
        Hook(
            "reply_not_empty",
            "reply",
            None,
            {"kind": "forbid", "patterns": [r"\A\Z"]},
            OnFail("retry", texts.EMPTY_REPLY),
        )
    ]
    names = [skill.name for skill in harness.skills.values() if skill.kind == "reply"]
    if harness.reply_skill_required and names:
        check = {"kind": "requires_skill", "skill_kind": "reply"}
        on_fail = OnFail("retry", texts.reply_skill_message(names))
        retry.append(Hook("reply_skill_required", "reply", None, check, on_fail))
    if harness.reply_schema and not any(hook.check.get("kind") == "valid_json" for hook in harness.hooks):
        on_fail = OnFail("retry", texts.NOT_THE_SCHEMA)
        retry.append(Hook("reply_schema", "reply", None, {"kind": "valid_json"}, on_fail))
    return retry


def _failures_again(
    hooks: Sequence[Hook], payload: dict[str, Any], harness: Harness, firings: Sequence[HookFiring]
) -> Iterator[HookFiring]:
    """What fails of the hooks now and has not failed in this way before; a rewrite is made once."""
    known = {(firing.hook, firing.outcome) for firing in firings}
    for hook in hooks:
        firing = _evaluate(hook, payload, harness) if hook.on_fail.action != "rewrite" else None
        if firing is not None and firing.outcome != "pass" and (firing.hook, firing.outcome) not in known:
            yield firing


def _evaluate(hook: Hook, payload: dict[str, Any], harness: Harness) -> HookFiring | None:
    try:
        if hook.when is not None and not applies(hook.when, hook.event, payload, harness):
            return None
        detail = run_check(hook.check, hook.event, payload, harness)
        if detail is None:
            return HookFiring(hook.name, hook.event, "pass")
        return _fail(hook, detail, payload)
    except (CheckError, PatternError) as failure:
        # A rule that stops something does not let through what it could not look at.
        is_block = hook.on_fail.action == "block"
        reply = hook.on_fail.reply if is_block else None
        outcome = "block" if is_block else "warn"
        return HookFiring(hook.name, hook.event, outcome, NOT_EVALUATED, str(failure), reply)
    except OutOfTime as failure:
        failure.where = f"hook {hook.name!r}"
        raise


def _fail(hook: Hook, detail: str, payload: dict[str, Any]) -> HookFiring:
    action = hook.on_fail.action
    message = hook.on_fail.message.replace("{detail}", detail)
    reply = hook.on_fail.reply
    if action == "rewrite" and reply is None:
        reply = str(payload["reply"])
        for entry in hook.on_fail.substitute:
            reply = substitute(entry.pattern, entry.replacement, reply)
    shown = "" if detail in message else detail
    return HookFiring(hook.name, hook.event, action, message or detail, shown if message else "", reply)
