"""ShareGPT: {"conversations": [{"from": "human", "value": "..."}], "system", "tools"}. A record is a conversation.

`tools` is a list, or JSON in a string. A turn `function_call` is a call of the agent, in JSON, `observation` what came
back. The id is the conversation's own, else its content names it.
https://llamafactory.readthedocs.io/en/latest/getting_started/data_preparation.html
"""

from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats import jsonl
from evolution.adapters.formats.calls import read_call
from evolution.adapters.formats.items import Where, each
from evolution.adapters.formats.messages import check_messages, conversation
from evolution.adapters.formats.shapes import as_list, as_text, unpack_json
from evolution.adapters.formats.values import RecordProblem, expect
from evolution.ports import Record

NAME = SOURCE = "sharegpt"
_NAMES = ("conversations", "conversation")


def fits(value: Any) -> bool:
    """Say whether a JSON value is a conversation of this format."""
    turns = _turns(value) if isinstance(value, dict) else []
    return bool(turns) and isinstance(turns[0], dict) and "from" in turns[0] and "value" in turns[0]


def read_item(item: dict[str, Any], where: Where, line: int) -> Record:  # noqa: ARG001  ids need no file name
    """Turn one conversation into a record; raises RecordProblem."""
    turns = _turns(item)
    if not turns:
        raise RecordProblem(_("the conversation has no messages"))
    system = expect(item, "system", str, "")
    messages = [{"role": "system", "content": system}] if system else []
    messages += [_message(turn, number) for number, turn in enumerate(turns, 1)]
    request, reply, trajectory = conversation(check_messages(messages), is_clean=True)
    tools = _tools(item.get("tools"))
    return Record(
        source=SOURCE,
        source_id=jsonl.name_by_content(item),
        failed=None,
        line=line,
        request=request,
        context={"tools": tools} if tools else {},
        trajectory=trajectory,
        reply=reply,
    )


def _turns(item: dict[str, Any]) -> list[Any]:
    return next((turns for name in _NAMES if (turns := as_list(item.get(name)))), [])


def _message(turn: Any, number: int) -> dict[str, Any]:
    if not isinstance(turn, dict) or not isinstance(turn.get("from"), str):
        raise RecordProblem(_("message %(number)d is not an object with a role") % {"number": number})
    speaker, value = turn["from"], turn.get("value")
    if speaker == "function_call":
        return {"role": "assistant", "content": None, "tool_calls": _calls(value, number)}
    # A list would be read as parts of a message.
    return {"role": speaker, "content": value if isinstance(value, str) else as_text(value) or value}


def _calls(value: Any, number: int) -> list[dict[str, Any]]:
    """One call, or a list of them."""
    unpacked = unpack_json(value)
    calls = unpacked if isinstance(unpacked, list) else [unpacked]
    if not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        raise RecordProblem(_("message %(number)d is no call of a tool in JSON") % {"number": number})
    return [read_call(call) for call in calls]


def _tools(value: Any) -> list[dict[str, Any]]:
    tools = [tool for tool in as_list(unpack_json(value)) if isinstance(tool, dict)]
    return [tool if "function" in tool else {"type": "function", "function": tool} for tool in tools]


def _name_item(item: dict[str, Any]) -> tuple[str, str]:
    return SOURCE, jsonl.name_by_content(item)


read = each(read_item, _name_item)
