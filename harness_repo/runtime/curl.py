"""A chat-completions request as a command for a shell, so that anybody can make the call again."""

import json
import re
from collections.abc import Mapping
from typing import Any

# Where the body ends. A line of laid-out JSON begins with a blank, a brace or a bracket, so none is this word.
_END = "JSON"
# "!" brings up an old command in some interactive shells, even here; the others are not what they look like.
_ESCAPED = re.compile("[!\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def to_curl(payload: Mapping[str, Any]) -> str:
    """A POSIX shell command that sends the payload to $LLM_BASE_URL, OpenAI's own without it, with $LLM_API_KEY.

    The body goes by standard input: an argument may have 128 KiB on Linux, and a body has no such limit. The shell
    expands nothing in it.
    """
    body = json.dumps(payload, ensure_ascii=False, indent=2)
    return (
        'curl -sS "${LLM_BASE_URL:-https://api.openai.com/v1}/chat/completions" \\\n'
        '  -H "Authorization: Bearer $LLM_API_KEY" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  --data-binary @- <<'{_END}'\n"
        f"{_ESCAPED.sub(_escape, body)}\n{_END}\n"
    )


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
