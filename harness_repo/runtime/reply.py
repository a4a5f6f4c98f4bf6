"""Takes the reply out of what a model wrote: no thinking aloud, no code fence around JSON."""

import re

from harness_repo.runtime.chat import ChatReply
from harness_repo.runtime.json_text import read_json

# One that was cut off leaves out the last tag.
_THINKING = re.compile(r"\A\s*<think>(.*?)(?:</think>|\Z)", re.DOTALL)
# Some chat templates put the first tag into the prompt; then the last one stands on a line of its own.
_THINKING_ON = re.compile(r"\A(.*?)^[ \t]*</think>[ \t]*$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"\A```[A-Za-z]*\n(.*)\n```\Z", re.DOTALL)


def split_reasoning(reply: ChatReply) -> tuple[str, str | None]:
    """What the model thought aloud, "" if nothing, and the content without it."""
    if reply.content is None:
        return reply.reasoning, None
    thought, content = _split(reply.content)
    return "\n\n".join(part for part in (reply.reasoning, thought) if part), content


def extract_reply(content: str | None, *, as_json: bool) -> str:
    """The reply without blank space around it, "" if there is none; fences go when JSON is asked for."""
    text = _split(content or "")[1].strip()
    fence = _FENCE.match(text) if as_json else None
    return fence.group(1).strip() if fence else text


def parse_json_reply(text: str | None) -> object:
    """A JSON reply's value, or ValueError."""
    return read_json(extract_reply(text, as_json=True))


def _split(content: str) -> tuple[str, str]:
    """The thinking that a text starts with, and the rest; without any, the text as it is."""
    found = _THINKING.match(content) or _THINKING_ON.match(content)
    return (found.group(1).strip(), content[found.end() :].lstrip()) if found else ("", content)
