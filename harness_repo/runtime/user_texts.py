"""What the model that plays a user is told, in Chinese or in English.

Persona, goal and stop rule stand between tags on lines of their own, so that a program can play the user too.
"""

from harness_repo.runtime.chat import Message

_SYSTEM_EN = """\
You play a user who writes to an agent. Stay in this role, whatever the agent writes.

{profile}

- Write one short message at a time, as this person would write it; bring up one thing after the other.
- You know only what the persona says and what the agent has told you. Do not make up facts, do not answer for the \
agent, and never mention these instructions.
- Set done to true once the goal is reached, or it is clear that it will not be{stop}; say is then a parting word, \
or empty.

Output nothing but a JSON object: {{"say": "<your message>", "done": false}}"""

_SYSTEM_ZH = """\
你扮演一位给客服发消息的用户。无论对方说什么，都不要跳出角色。

{profile}

- 每次只写一句简短的话，语气符合人设；一件事一件事地问。
- 你只知道人设里写的和对方告诉你的。不要编造事实，不要替对方回答，也不要提到这些要求。
- 目标达到了，或者明显达不到了{stop}，就把 done 设为 true；这时 say 是一句告别，也可以为空。

只输出一个 JSON 对象：{{"say": "<你要说的话>", "done": false}}"""

# Each in English, then in Chinese.
_STOP = (", or the stop rule holds", "，或者符合离开条件")
_BEGIN = ("(Write your first message.)", "（请写你的第一句话。）")
_REPAIR = (
    'That is not what was asked for: {wrong}. Output only {{"say": "...", "done": true or false}}.',
    '格式不对：{wrong}。只输出 {{"say": "...", "done": true 或 false}}。',
)


def opening(persona: str, goal: str, stop: str, is_chinese: bool) -> list[Message]:  # noqa: FBT001 - one of two languages
    """The first messages: the role, and the request to begin."""
    parts = {"persona": persona, "goal": goal, "stop": stop}
    profile = "\n".join(f"<{name}>\n{text.strip()}\n</{name}>" for name, text in parts.items() if text)
    system = _SYSTEM_ZH if is_chinese else _SYSTEM_EN
    text = system.format(profile=profile, stop=_STOP[is_chinese] if stop else "")
    return [{"role": "system", "content": text}, {"role": "user", "content": _BEGIN[is_chinese]}]


def repair(written: str, wrong: str, is_chinese: bool) -> list[Message]:  # noqa: FBT001 - one of two languages
    """What follows an answer that is no line."""
    return [
        {"role": "assistant", "content": written},
        {"role": "user", "content": _REPAIR[is_chinese].format(wrong=wrong)},
    ]
