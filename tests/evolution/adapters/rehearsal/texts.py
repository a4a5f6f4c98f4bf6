"""Small harnesses and requests for the rehearsal model's tests, built here so that a test shows all that is read."""

import json
from typing import Any

from evolution.adapters.rehearsal import RehearsalModel
from harness_repo.format.harness import Harness, read_harness
from harness_repo.runtime.agent import run_agent
from harness_repo.runtime.context import build_variables
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.runtime.trajectory import Trajectory

HARNESS = """\
format: 1
name: small
kind: agent
limits: {turns: 8, tool_calls: 12, hook_retries: 2, seconds: 20}
prompt:
  - {name: room, file: prompts/room.md}
  - {name: rules, file: prompts/rules.md}
  - {name: request, file: prompts/request.md, role: user}
reply_skill_required: true
"""
ROOM = """\
## 直播间状态
当前讲解：{{ room.current_link }}号链接
## 商品列表
{% for product in products %}
- {{ product.link_id }}号链接：{{ product.name }}
{% endfor %}
## 技能目录
{% for skill in skills %}
- {{ skill.name }} ({{ skill.kind }}): {{ skill.description }}
{% endfor %}
"""
REQUEST = """\
## 本次弹幕
{% for item in danmaku %}
- {{ item.user }}：{{ item.text }}
{% endfor %}
"""
COUPON_TOOL = """\
name: get_coupon_info
description: 查询优惠
parameters:
  type: object
  properties: {link_id: {type: integer, description: 链接号}}
  required: [link_id]
returns:
  name: 商品名 / product
  final_price: 券后价，单位元 / price after coupon, in yuan
  coupon: 优惠券 / coupon
source: {kind: fixture}
"""
COUPON = {"name": "防晒霜", "final_price": 89, "coupon": "满129减40"}
PRICE_BODY = "## 步骤\n1. 调用 `get_coupon_info`。\n## 回复要点\n- 说明 final_price（券后价）。\n"


def skill(name: str, description: str, body: str, kind: str = "reply") -> dict[str, bytes]:
    """The file of one skill."""
    front = f"---\nname: {name}\ndescription: {description}\nmetadata:\n  kind: {kind}\n---\n"
    return {f"skills/{name}/SKILL.md": (front + body).encode()}


def harness_files(rules: list[str] | None = None, *more: dict[str, bytes]) -> dict[str, bytes]:
    """A harness with one price skill, the rules, and whatever else is given."""
    text = "## 约束\n" + "".join(f"- {rule}\n" for rule in rules or [])
    files = {
        "harness.yaml": HARNESS.encode(),
        "prompts/room.md": ROOM.encode(),
        "prompts/request.md": REQUEST.encode(),
        "prompts/rules.md": text.encode(),
        "tools/get_coupon_info.yaml": COUPON_TOOL.encode(),
        **skill("price-qa", "通用问答，观众问价格、优惠时使用", PRICE_BODY),
    }
    for extra in more:
        files.update(extra)
    return files


async def answer(
    files: dict[str, bytes], *danmaku: str, fixtures: dict[str, Any] | None = None, current: int = 1
) -> Trajectory:
    """Run the policy on danmaku in a room with two products."""
    harness = clean(files)
    request = {"danmaku": [{"user": "观众", "text": text} for text in danmaku]}
    context = {
        "room": {"current_link": current},
        "products": [{"link_id": 1, "name": "清爽防晒霜"}, {"link_id": 3, "name": "羊绒围巾"}],
        "faq": [],
    }
    found = {"get_coupon_info": [{"arguments": {}, "result": COUPON}]} if fixtures is None else fixtures
    return await run_agent(
        harness,
        build_variables(request, context),
        RehearsalModel(),
        model_name="rehearsal-policy",
        sandbox=ToolSandbox(harness.tools, found),
    )


def clean(files: dict[str, bytes]) -> Harness:
    """The harness, which has to read without problems."""
    harness = read_harness(files)
    assert [str(problem) for problem in harness.problems] == []
    return harness


def tool_arguments(trajectory: Trajectory) -> list[Any]:
    """The arguments of the calls but load_skill."""
    return [call.arguments for call in trajectory.tool_calls if call.name != "load_skill"]


def dumped(trajectory: Trajectory) -> str:
    """The trajectory's messages as one text, for comparing runs."""
    return json.dumps(trajectory.messages, ensure_ascii=False)
