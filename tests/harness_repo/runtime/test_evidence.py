"""What a reply may rest on, in whole runs: viewers say what they like, and it counts for nothing."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from harness_repo.format.harness import Harness, read_harness
from harness_repo.format.hooks import Hook, OnFail
from harness_repo.format.prompts import PromptSection
from harness_repo.runtime.chat import ChatReply
from harness_repo.runtime.native import NativeRunner
from harness_repo.runtime.runner import RunCase
from tests.harness_repo.build import FILES
from tests.harness_repo.runtime.scripted import ScriptedModel, load, say

TEMPLATE = """商品1：1年质保，保证1年质保
不要承诺绝对有效
{% for turn in history %}- {{ turn.role }}: {{ turn.content }}
{% endfor %}{% for item in danmaku %}- {{ item.user }}：{{ item.text }}
{% endfor %}
{{ request }}
"""


def harness(check: str) -> Harness:
    hook = Hook("rule", "reply", None, {"kind": check}, OnFail("block", "m", "fallback"))
    prompt = [PromptSection("s", "prompts/s.md", "user", TEMPLATE)]
    return replace(read_harness(FILES), prompt=prompt, hooks=[hook], reply_skill_required=False)


async def status(
    check: str, request: Mapping[str, object], *answers: ChatReply, skill: str | None = None
) -> str:
    agent = harness(check)
    if skill is not None:
        agent.skills["item-qa"] = replace(agent.skills["item-qa"], body=skill)
    run = await NativeRunner(agent, ScriptedModel(list(answers)), "m").run(RunCase("k", request))
    return run.status


@pytest.mark.parametrize(
    "request_",
    [
        {"danmaku": [{"user": "u", "text": "你们保证全额退款"}]},
        {"danmaku": ["真的吗"], "history": [{"role": "user", "content": "你们保证全额退款"}]},
        {"danmaku": ["真的吗"], "history": [{"role": "我们保证全额退款", "content": "x"}]},
        {"danmaku": ["真的吗"], "history": [{"我们保证全额退款": "x", "role": "user", "content": "y"}]},
        {"danmaku": ["真的吗"], "history": [{"role": "assistant", "content": "我们保证全额退款"}]},
        {"danmaku": [{"user": "u", "text": "你"}, {"user": "v", "text": "你们保证全额退款"}]},
        {"danmaku": [{"user": "保证全额退款", "text": "在吗"}]},
        {"danmaku": ["保证全额退款\n好的"]},
    ],
)
async def test_what_viewers_say_is_no_evidence(request_: dict[str, object]) -> None:
    assert await status("no_promise", request_, say("我们保证全额退款")) == "blocked"


@pytest.mark.parametrize("text", ["1", "年", "保证1年质保", "商品1：1年质保，保证1年质保"])
async def test_what_viewers_say_takes_nothing_away(text: str) -> None:
    assert await status("no_promise", {"danmaku": [text]}, say("保证1年质保")) == "ok"


async def test_a_rule_of_the_prompt_is_no_evidence() -> None:
    assert await status("no_promise", {"danmaku": ["?"]}, say("绝对有效")) == "blocked"


@pytest.mark.parametrize(("check", "reply"), [("cites_evidence", "45天内可退"), ("no_promise", "终身质保")])
async def test_a_skill_that_was_loaded_is_evidence(check: str, reply: str) -> None:
    body, request = "退货期为45天，终身质保", {"danmaku": ["?"]}
    assert await status(check, request, load("item-qa"), say(reply), skill=body) == "ok"
    assert await status(check, request, say(reply), skill=body) == "blocked"


async def test_numbers_of_the_prompt_and_of_viewers_may_be_said() -> None:
    assert await status("cites_evidence", {"danmaku": ["身高165"]}, say("165的话，1年质保")) == "ok"
