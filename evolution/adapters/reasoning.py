"""Keeps what a model thinks aloud apart from what it says; servers put it in four different places."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_TAG = "(?:think|thinking|thought)"
_OPENING = re.compile(rf"\A\s*<{_TAG}>", re.IGNORECASE)
_CLOSING = re.compile(rf"</{_TAG}>", re.IGNORECASE)
# A chat template may write the opening tag itself, and the server then returns only the closing one. In JSON, and
# after an opening tag further on, it is a part of the text.
_NO_THOUGHT = re.compile(rf"\A\s*[{{\[]|<{_TAG}>", re.IGNORECASE)


def split_reasoning(message: Mapping[str, Any]) -> tuple[str | None, str]:
    """The text of a message, None where there is none, and the reasoning beside or before it.

    Read are `reasoning_content`, `reasoning`, parts of the content with thinking, and a block in think tags.
    Raises ValueError for content that is neither text nor parts.
    """
    content, thoughts = _join_parts(message.get("content"))
    beside = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(beside, str):
        thoughts.insert(0, beside)
    if content is not None:
        content, thought = split_thinking(content)
        thoughts.append(thought)
    return content, "\n\n".join(filter(None, (thought.strip() for thought in thoughts)))


def split_thinking(text: str) -> tuple[str, str]:
    """The text after a block in think tags at its beginning, and the block; one that is never closed is all of it."""
    opening = _OPENING.match(text)
    if opening is None and _NO_THOUGHT.search(text):
        return text, ""
    start = opening.end() if opening else 0
    closing = _CLOSING.search(text, start)
    if closing:
        return text[closing.end() :].lstrip(), text[start : closing.start()].strip()
    return ("", text[start:].strip()) if opening else (text, "")


def _join_parts(content: Any) -> tuple[str | None, list[str]]:
    """The text of a content, and the thoughts among its parts."""
    if content is None or isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        raise ValueError("the content is neither text nor a list of parts")
    said = [part for part in content if not _is_thought(part)]
    thoughts = [_text_of(part) for part in content if _is_thought(part)]
    return ("".join(map(_text_of, said)) if said else None), thoughts


def _is_thought(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in {"thinking", "reasoning"}


def _text_of(part: Any) -> str:
    """The text of a part, which may stand under the name of its type and be in parts again."""
    if isinstance(part, str):
        return part
    if isinstance(part, Sequence):
        return "".join(map(_text_of, part))
    if not isinstance(part, Mapping):
        raise ValueError("a part of the content is neither text nor an object")
    names = ("text", "thinking", "reasoning", "refusal")
    return _text_of(next((part[name] for name in names if part.get(name)), ""))
