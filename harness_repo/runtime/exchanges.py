"""Takes the messages of a conversation apart again, so that what was said stands in them once.

The agent is run anew for each line of the user, and every run begins with its prompt, history included.
"""

from collections.abc import Sequence

from harness_repo.runtime.chat import Message
from harness_repo.runtime.completing import ends_with_word, skip_instructions
from harness_repo.runtime.trajectory import Exchange, Trajectory

# A message, and the turn that it belongs to: the number of agent's messages up to it.
Line = tuple[int, Message]


def number_turns(messages: Sequence[Message]) -> list[Line]:
    """Each message with its turn."""
    lines: list[Line] = []
    turn = 0
    for message in messages:
        turn += message["role"] == "assistant"
        lines.append((turn, message))
    return lines


def conversation_lines(run: Trajectory) -> list[Line]:
    """The instructions once, then every line of the user with the agent's messages that answer it."""
    lines = number_turns(run.messages)
    told = lines[: skip_instructions(run.messages)]
    parts = _split(lines, run)
    turn = 0
    for exchange, part in zip(run.conversation, parts, strict=True):
        own = _answers(part, exchange, is_ours=not run.runner)
        told += [(turn, {"role": "user", "content": exchange.user}), *own]
        turn = part[-1][0] if part else turn
        if exchange.reply is not None and not ends_with_word([message for _, message in own]):
            told.append((turn, {"role": "assistant", "content": exchange.reply}))
    return told


def _split(lines: list[Line], run: Trajectory) -> list[list[Line]]:
    """The lines of each exchange's run; none for a line of the user that was not answered."""
    starts = [place for place, (_, message) in enumerate(lines) if message["role"] == "system"]
    count = len(run.conversation)
    # A last line that the agent was not asked to answer has no run.
    if not run.runner and starts and starts[0] == 0 and count - 1 <= len(starts) <= count:
        ends = [*starts[1:], len(lines)]
        parts = [lines[start:end] for start, end in zip(starts, ends, strict=True)]
        return parts + [[]] * (count - len(parts))
    parts, place = [], 0
    for exchange in run.conversation:
        end = _end_of(lines, place, exchange)
        parts.append(lines[place:end])
        place = end
    return parts


def _end_of(lines: list[Line], place: int, exchange: Exchange) -> int:
    """Where the run ends that gave this reply; one without a reply is the last."""
    if exchange.reply is None:
        return len(lines)
    is_asked = False
    for number in range(place, len(lines)):
        message = lines[number][1]
        is_asked = is_asked or (message["role"] == "user" and message.get("content") == exchange.user)
        is_word = message["role"] == "assistant" and not message.get("tool_calls")
        if is_word and is_asked and message.get("content") == exchange.reply:
            return number + 1
    for number in range(place, len(lines)):
        message = lines[number][1]
        if message["role"] == "assistant" and message.get("content") == exchange.reply:
            return number + 1
    return place


def _answers(part: list[Line], exchange: Exchange, *, is_ours: bool) -> list[Line]:
    """What the agent did after it was asked; a hook's request to reply again is part of that."""
    if is_ours:
        first = next((n for n, (_, message) in enumerate(part) if message["role"] == "assistant"), len(part))
        return part[first:]
    asked = [n for n, (_, message) in enumerate(part) if message["role"] == "user"]
    exact = [n for n in asked if part[n][1].get("content") == exchange.user]
    first = (exact or asked or [-1])[-1] + 1
    return [line for line in part[first:] if line[1]["role"] in ("assistant", "tool")]
