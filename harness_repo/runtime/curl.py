"""A chat-completions request as a command for a shell, so that anybody can make the call again."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# Where the body ends. A line of laid-out JSON begins with a blank, a brace or a bracket, so none is this word.
_END = "JSON"
# "!" brings up an old command in some interactive shells, even here; the others are not what they look like.
_ESCAPED = re.compile("[!\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
# For the one that would end a quoted text.
_APOSTROPHE = "\u2019"


def to_curl(payload: Mapping[str, Any], notes: Sequence[str] = ()) -> str:
    """A POSIX shell command that sends the payload to $LLM_BASE_URL, OpenAI's own without it, with $LLM_API_KEY.

    A payload that names no model is sent with $LLM_MODEL. Notes stand before it, as a command that does nothing:
    not every shell takes comments when somebody types.

    The body goes by standard input: an argument may have 128 KiB on Linux, and a body has no such limit. The shell
    expands nothing in it.
    """
    body = _ESCAPED.sub(_escape, json.dumps(payload, ensure_ascii=False, indent=2))
    remarks = "".join(map(_remark, notes))
    send = (
        'curl -sS "${LLM_BASE_URL:-https://api.openai.com/v1}/chat/completions" \\\n'
        '  -H "Authorization: Bearer $LLM_API_KEY" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        "  --data-binary @-"
    )
    if "model" in payload:
        return f"{remarks}{send} <<'{_END}'\n{body}\n{_END}\n"
    first = """printf '{\\n  "model": "%s",' "${LLM_MODEL:-MODEL}"; cat <<"""
    return f"{remarks}{{ {first}'{_END}'; }} |\n{body.removeprefix('{')}\n{_END}\n{send}\n"


def _remark(note: str) -> str:
    text = _ESCAPED.sub(" ", note.replace("'", _APOSTROPHE))
    return f": '{text}'\n"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
