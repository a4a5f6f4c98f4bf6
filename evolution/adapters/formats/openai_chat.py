"""Chat completions as OpenAI's clients log them and its fine-tuning takes them. A record is a conversation.

    {"messages": [...], "tools": [...]}                                      fine-tuning, one on each line
    {"request": {"messages": [...]}, "response": {"choices": [...]}}         a logged call
    {"custom_id": "...", "response": {"status_code": 200, "body": {...}}}    an output file of the Batch API
    [{"role": "user", "content": "..."}, ...]                                a conversation: a line, or a whole file

A call that was answered by an error has an error, and one that was answered has none. The id is the call's, else the
content names it. https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats import jsonl
from evolution.adapters.formats.items import Item, Where, each
from evolution.adapters.formats.messages import check_messages, conversation
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, read_time
from evolution.adapters.formats.values import RecordProblem
from evolution.ports import Found, Record

NAME = SOURCE = "openai-chat"
# What a call is logged under, and what its answer is.
_REQUESTS = ("request", "body", "input", "kwargs")
_RESPONSES = ("response", "output", "completion")


def fits(value: Any) -> bool:
    """Say whether a JSON value is a conversation, or a call of the chat API and its answer."""
    if isinstance(value, list):
        return bool(value) and all(_is_message(entry) for entry in value)
    if not isinstance(value, dict):
        return False
    if _is_message(value) and not isinstance(value.get("messages"), list):
        return True
    if isinstance(value.get("messages"), list):
        return not jsonl.OWN & value.keys() or bool(_answer(value))
    return bool(_asked(value) or _answer(value))


def read(items: Iterator[Item], where: Where) -> Iterator[Found]:
    """Read calls and conversations; messages that stand alone are one conversation, as far as the next that is not."""
    alone: list[Item] = []
    for item in items:
        if _is_message(item.value) and not isinstance(item.value.get("messages"), list):
            alone.append(item)
            continue
        if alone:
            yield _read_alone(alone, where)
            alone = []
        yield from _read_objects(iter([_as_object(item)]), where)
    if alone:
        yield _read_alone(alone, where)


def _read_alone(items: list[Item], where: Where) -> Found:
    whole = {"messages": [item.value for item in items]}
    first = items[0]._replace(value=whole, is_clean=False, text="")
    return next(_read_objects(iter([first]), where))


def _as_object(item: Item) -> Item:
    return item._replace(value={"messages": item.value}, text="") if isinstance(item.value, list) else item


def read_item(item: dict[str, Any], where: Where, line: int) -> Record:
    """Turn a conversation, or a call with its answer, into a record; raises RecordProblem."""
    asked, answer = _asked(item), _answer(item)
    if _is_our_own(item, answer):
        return jsonl.read_item(item, where, line)
    given = as_list((asked or item).get("messages"))
    errors = _errors(item)
    if not given and not errors and not answer:
        raise RecordProblem(_("the conversation has no messages"))
    messages = check_messages([*given, *_replies(answer)]) if given or _replies(answer) else []
    request, reply, trajectory = conversation(messages, is_clean=True)
    return Record(
        source=SOURCE,
        source_id=_identity(item, answer),
        failed=None,
        line=line,
        request=request,
        context=_context(item, asked or item, answer),
        trajectory=trajectory,
        reply=reply,
        errors=errors,
        has_status=bool(answer) or bool(errors),
        happened_at=_happened_at(item, answer),
    )


def _is_our_own(item: dict[str, Any], answer: dict[str, Any]) -> bool:
    return not answer and "messages" in item and bool(jsonl.OWN & item.keys())


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and ("content" in value or "tool_calls" in value or "function_call" in value)
    )


def _asked(item: dict[str, Any]) -> dict[str, Any]:
    """What the model was asked, where it stands inside of the item."""
    for name in _REQUESTS:
        inner = as_dict(item.get(name))
        inner = as_dict(inner.get("body")) or inner
        if isinstance(inner.get("messages"), list):
            return inner
    return {}


def _answer(item: dict[str, Any]) -> dict[str, Any]:
    """What the model answered, {} where there is nothing of it."""
    for name in _RESPONSES:
        inner = as_dict(item.get(name))
        inner = as_dict(inner.get("body")) or inner
        if isinstance(inner.get("choices"), list) or inner.get("error"):
            return inner
    return item if isinstance(item.get("choices"), list) else {}


def _replies(answer: dict[str, Any]) -> list[Any]:
    """The first choice's message; the others were never said."""
    choices = as_list(answer.get("choices"))
    first = as_dict(choices[0]) if choices else {}
    message = as_dict(first.get("message"))
    return [{"role": "assistant", **message}] if message else []


def _errors(item: dict[str, Any]) -> tuple[str, ...]:
    answer = _answer(item)
    response = as_dict(item.get("response"))
    found = [_error_text(holder.get("error")) for holder in (item, response, answer)]
    status = response.get("status_code")
    if isinstance(status, int) and status >= 400:
        found.append(f"HTTP {status}")
    return tuple(dict.fromkeys(text for text in found if text))


def _error_text(error: Any) -> str:
    if isinstance(error, str):
        return error
    fields = as_dict(error)
    code, message = as_text(fields.get("code") or fields.get("type")), as_text(fields.get("message"))
    return ": ".join(text for text in (code, message) if text)


def _identity(item: dict[str, Any], answer: dict[str, Any]) -> str:
    named = (item.get("custom_id"), item.get("id"), item.get("request_id"), answer.get("id"))
    return next((text for text in map(as_text, named) if text), "") or jsonl.name_by_content(
        {**item, "id": None}
    )


def _context(item: dict[str, Any], asked: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    model = as_text(answer.get("model")) or as_text(asked.get("model"))
    tools = [tool for tool in as_list(asked.get("tools")) if isinstance(tool, dict)]
    tools = tools or [
        {"type": "function", "function": old}
        for old in as_list(asked.get("functions"))
        if isinstance(old, dict)
    ]
    found = {"model": model, "tools": tools, "metadata": as_dict(item.get("metadata"))}
    return {name: value for name, value in found.items() if value}


def _happened_at(item: dict[str, Any], answer: dict[str, Any]) -> Any:
    given = (item.get("created_at"), item.get("timestamp"), answer.get("created"))
    return next((moment for value in given if value and (moment := read_time(value))), None)


def _name_item(item: dict[str, Any]) -> tuple[str, str]:
    answer = _answer(item)
    if _is_our_own(item, answer):
        return jsonl.name_item(item)
    return SOURCE, _identity(item, answer)


_read_objects = each(read_item, _name_item)
