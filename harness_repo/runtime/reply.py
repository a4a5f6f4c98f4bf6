"""Takes the reply out of what a model wrote: no thinking aloud, no code fence around JSON."""

import re

from harness_repo.runtime.json_text import read_json

_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"\A```[A-Za-z]*\n(.*)\n```\Z", re.DOTALL)


def extract_reply(content: str | None, *, as_json: bool) -> str:
    """The reply without blank space around it, "" if there is none; fences go when JSON is asked for."""
    text = _THINKING.sub("", content or "").strip()
    fence = _FENCE.match(text) if as_json else None
    return fence.group(1).strip() if fence else text


def parse_json_reply(text: str | None) -> object:
    """A JSON reply's value, or ValueError."""
    return read_json(extract_reply(text, as_json=True))
