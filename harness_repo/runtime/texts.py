"""What the runtime itself says to a model, in Chinese and English, since a harness may be in either."""

from collections.abc import Sequence

LOAD_SKILL_DESCRIPTION = (
    "加载一个技能的正文，然后按正文的步骤做。Load the body of a skill, then follow its steps."
)

_RETRY_FRAME = (
    "上一条回复没有发出，请按下面的要求重新回复。Your last reply was not sent; reply again, obeying this:"
)


def load_skill_definition(index: Sequence[dict[str, str]], *, shown: bool) -> dict[str, object]:
    """The tool load_skill; its description carries the skill index unless the prompt shows it."""
    lines = (
        [] if shown else [f"- {skill['name']} ({skill['kind']}): {skill['description']}" for skill in index]
    )
    name = {"type": "string", "enum": [skill["name"] for skill in index]}
    function = {
        "name": "load_skill",
        "description": "\n".join([LOAD_SKILL_DESCRIPTION, *lines]),
        "parameters": {
            "type": "object",
            "properties": {"name": name},
            "required": ["name"],
            "additionalProperties": False,
        },
    }
    return {"type": "function", "function": function}


def retry_message(messages: Sequence[str]) -> str:
    """The message after a refused reply: one list item for each rule that was broken."""
    items = [text if text.startswith("- ") else f"- {text}" for text in dict.fromkeys(messages)]
    return "\n".join([_RETRY_FRAME, *items])


def reply_skill_message(names: Sequence[str]) -> str:
    """Asks for a reply skill by name."""
    known = ", ".join(names)
    return f"回复前先用 load_skill 加载一个 reply 类技能。Load a reply skill before replying: {known}"


EMPTY_REPLY = "回复是空的，请给出回复。The reply is empty; give one."
NOT_THE_SCHEMA = "只输出一个符合要求的 JSON 对象。Output one JSON object that fits the schema: {detail}"
# What the program that reads the reply has against it.
NOT_OF_USE = "回复读不懂，请改正后重新输出。The reply can't be read; correct it and output it again: {detail}"
