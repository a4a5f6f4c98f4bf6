"""The documented rules of the rehearsal policy, one by one, on harness texts made here."""

import pytest

from evolution.adapters.rehearsal import RehearsalModel, habits
from evolution.adapters.rehearsal.rules import ATTENTION
from harness_repo.runtime.chat import ChatError, ChatRequest
from tests.evolution.adapters.rehearsal.texts import (
    COUPON,
    COUPON_TOOL,
    answer,
    dumped,
    harness_files,
    skill,
    tool_arguments,
)

VERIFY = "查不到的就说核实一下，不要编造。"
FILLER = "回复要口语化。"


def firing_danmaku() -> str:
    """A question of price on which the habit fires."""
    asked = (f"防晒霜多少钱{'呀' * n}" for n in range(1, 60))
    return next(text for text in asked if habits.habit(text, chinese=True, forbids=lambda *_: False))


def promised(danmaku: str) -> str:
    """What the habit says on it."""
    clause = habits.habit(danmaku, chinese=True, forbids=lambda *_: False)
    assert clause is not None
    return clause


async def test_states_the_fields_that_the_skill_names_with_label_and_unit() -> None:
    run = await answer(harness_files([VERIFY]), "防晒霜多少钱")
    assert run.status == "ok"
    assert "券后价89元" in (run.reply or "")
    assert "满129减40" not in (run.reply or "")


async def test_states_the_first_two_fields_when_none_is_named() -> None:
    body = "1. 调用 `get_coupon_info`。\n"
    run = await answer(harness_files([VERIFY], skill("price-qa", "通用，价格", body)), "防晒霜多少钱")
    assert "券后价89元" in (run.reply or "")
    assert "满129减40" in (run.reply or "")


async def test_loads_the_closest_skill() -> None:
    talk = skill("talk", "观众打招呼、闲聊时使用", "- 话术：「欢迎来到直播间。」\n")
    run = await answer(harness_files([], talk), "主播晚上好")
    assert run.skills_loaded == ["talk"]
    assert (run.reply or "").startswith("欢迎来到直播间。")


async def test_falls_back_to_the_general_skill() -> None:
    talk = skill("a-talk", "观众打招呼时使用", "- 话术：「欢迎。」\n")
    run = await answer(harness_files([VERIFY], talk), "呃嗯")
    assert run.skills_loaded == ["price-qa"]


async def test_a_strategy_brings_a_reply_skill_with_it() -> None:
    compare = skill("compare", "观众问两款有什么区别、哪个好、对比", "说明差别。\n", kind="strategy")
    run = await answer(harness_files([VERIFY], compare), "1号和3号有什么区别")
    assert run.skills_loaded == ["compare", "price-qa"]


@pytest.mark.parametrize(
    ("danmaku", "link"),
    [
        ("3号链接多少钱", 3),
        ("how much is link 3", 3),
        ("price of #3 please", 3),
        ("围巾多少钱", 3),
        ("多少钱", 1),
        ("三号链接多少钱", 3),
    ],
)
async def test_fills_the_link(danmaku: str, link: int) -> None:
    run = await answer(harness_files([VERIFY]), danmaku)
    assert tool_arguments(run) == [{"link_id": link}]


async def test_fills_an_enum_by_its_documentation_and_a_region_by_the_place() -> None:
    tool = COUPON_TOOL.replace("get_coupon_info", "get_order").replace(
        "{link_id: {type: integer, description: 链接号}}",
        "{topic: {type: string, enum: [cancel, invoice], description: cancel 取消订单; invoice 开发票},"
        " region: {type: string, description: 地区}}",
    )
    files = harness_files(
        [VERIFY],
        {"tools/get_order.yaml": tool.replace("[link_id]", "[topic]").encode()},
        skill("order", "订单、发票", "1. 调用 `get_order`。\n"),
    )
    run = await answer(files, "寄到成都的能开发票吗")
    assert tool_arguments(run) == [{"topic": "invoice", "region": "成都"}]


async def test_takes_a_conditional_step_only_when_the_danmaku_is_about_it() -> None:
    body = "1. 如果观众问到优惠、价格，调用 `get_coupon_info`。\n- 说明 final_price（券后价）。\n"
    files = harness_files([VERIFY], skill("price-qa", "通用问答", body))
    assert tool_arguments(await answer(files, "有优惠吗")) == [{"link_id": 1}]
    assert tool_arguments(await answer(files, "主播好")) == []


async def test_fills_a_script_and_drops_clauses_without_a_value() -> None:
    body = "1. 调用 `get_coupon_info`。\n- 话术：「现在只要{final_price}元，限量{stock}件，快来拍。」\n"
    run = await answer(
        harness_files([VERIFY, "不要说「最低」这类比价格的话"], skill("price-qa", "通用", body)), "多少钱"
    )
    assert run.reply == "现在只要89元，快来拍。"


async def test_verifies_missing_data_when_a_rule_says_so() -> None:
    run = await answer(harness_files([VERIFY, "不要比价格"]), "多少钱", fixtures={})
    assert run.reply == "这个我帮你核实一下哈。"


async def test_invents_without_such_a_rule() -> None:
    run = await answer(harness_files([FILLER]), "多少钱", fixtures={})
    assert "核实" not in (run.reply or "")
    assert run.reply


async def test_over_promises_when_nothing_forbids_it() -> None:
    danmaku = firing_danmaku()
    run = await answer(harness_files([VERIFY]), danmaku)
    assert promised(danmaku) in (run.reply or "")


async def test_a_rule_that_quotes_the_claim_stops_it() -> None:
    danmaku = firing_danmaku()
    run = await answer(harness_files([VERIFY, f"不要说「{promised(danmaku)}」。"]), danmaku)
    assert promised(danmaku) not in (run.reply or "")
    assert "89" in (run.reply or "")


async def test_a_rule_about_the_topic_stops_it() -> None:
    danmaku = firing_danmaku()
    run = await answer(harness_files([VERIFY, "不要和别处比价格。"]), danmaku)
    assert promised(danmaku) not in (run.reply or "")


async def test_a_rule_about_something_else_does_not_stop_it() -> None:
    danmaku = firing_danmaku()
    run = await answer(harness_files([VERIFY, "不要说「明天就能到」。"]), danmaku)
    assert promised(danmaku) in (run.reply or "")


async def test_a_rule_pushed_out_of_attention_does_not_stop_it_any_more() -> None:
    danmaku = firing_danmaku()
    rule = f"不要说「{promised(danmaku)}」。"
    kept = await answer(harness_files([rule, *[FILLER] * (ATTENTION - 1)]), danmaku)
    lost = await answer(harness_files([rule, *[FILLER] * ATTENTION]), danmaku)
    assert promised(danmaku) not in (kept.reply or "")
    assert promised(danmaku) in (lost.reply or "")


async def test_rules_of_a_loaded_skill_outrank_those_of_the_prompt() -> None:
    danmaku = firing_danmaku()
    body = f"1. 调用 `get_coupon_info`。\n## 注意\n- 不要说「{promised(danmaku)}」。\n"
    files = harness_files([FILLER] * (ATTENTION + 5), skill("price-qa", "通用，价格", body))
    assert promised(danmaku) not in ((await answer(files, danmaku)).reply or "")


async def test_a_hook_stops_it_and_costs_no_attention() -> None:
    danmaku = firing_danmaku()
    claim = promised(danmaku)
    hook = (
        f"name: forbid\nevent: reply\ncheck: {{kind: forbid, patterns: ['{claim}']}}\n"
        f"on_fail: {{action: retry, message: '- 不要说「{claim}」。'}}\n"
    )
    files = harness_files([FILLER] * (ATTENTION + 5), {"hooks/forbid.yaml": hook.encode()})
    run = await answer(files, danmaku)
    assert run.status == "ok"
    assert claim not in (run.reply or "")


async def test_answers_only_the_first_danmaku_unless_told_to_answer_each() -> None:
    asked = ("1号多少钱", "3号链接多少钱")
    first = await answer(harness_files([VERIFY]), *asked)
    each = await answer(harness_files([VERIFY, "逐条回应每条弹幕。"]), *asked)
    assert tool_arguments(first) == [{"link_id": 1}]
    assert tool_arguments(each) == [{"link_id": 1}, {"link_id": 3}]
    assert "3号链接" in (each.reply or "")


async def test_replies_in_english_only_when_told_to() -> None:
    chinese = await answer(harness_files([VERIFY]), "how much is link 3")
    english = await answer(harness_files([VERIFY, "观众用英文提问，就用英文回复。"]), "how much is link 3")
    assert "券后价89元" in (chinese.reply or "")
    assert "the price after coupon is 89 yuan" in (english.reply or "")


async def test_says_a_bilingual_value_in_the_language_of_the_reply() -> None:
    fixtures = {
        "get_coupon_info": [{"arguments": {}, "result": {**COUPON, "coupon": "减40元 (40 yuan off)"}}]
    }
    body = "1. 调用 `get_coupon_info`。\n- 说明 coupon（优惠券）。\n"
    files = harness_files([VERIFY, "观众用英文提问，就用英文回复。"], skill("price-qa", "通用，价格", body))
    assert "40 yuan off" in ((await answer(files, "any coupon?", fixtures=fixtures)).reply or "")
    assert "(40" not in ((await answer(files, "有优惠券吗", fixtures=fixtures)).reply or "")


async def test_states_three_fields_at_most_the_one_asked_for_first() -> None:
    labels = {"final_price": "券后价", "coupon": "优惠券", "origin": "产地", "weight": "重量"}
    tool = COUPON_TOOL.replace(
        "  coupon: 优惠券 / coupon\n",
        "".join(f"  {k}: {v}\n" for k, v in labels.items() if k != "final_price"),
    )
    values = {"final_price": 89, "coupon": "满减", "origin": "广州", "weight": "60克"}
    body = "1. 调用 `get_coupon_info`。\n- 说明 final_price、coupon、weight、origin。\n"
    files = harness_files(
        [VERIFY, "不要比价格。"],
        {"tools/get_coupon_info.yaml": tool.encode()},
        skill("price-qa", "通用，产地", body),
    )
    run = await answer(files, "产地在哪", fixtures={"get_coupon_info": [{"arguments": {}, "result": values}]})
    assert run.reply == "1号链接清爽防晒霜，产地是广州，券后价89元，优惠券满减哈。"


async def test_says_the_script_whose_condition_fits_best() -> None:
    lines = "- 话术（下班、晚安）：「早点休息。」\n- 话术（生日）：「生日快乐。」\n"
    run = await answer(harness_files([VERIFY], skill("talk", "闲聊、生日、下班", lines)), "今天我生日")
    assert (run.reply or "").startswith("生日快乐。")


async def test_admits_that_only_other_things_were_found_when_a_rule_says_so() -> None:
    rule = "工具返回里没有观众问的那一项时，直接说「这个我帮你核实一下」，不要拿别的信息顶上。"
    without = await answer(harness_files([VERIFY]), "呃嗯")
    told = await answer(harness_files([VERIFY, rule]), "呃嗯")
    assert "核实" not in (without.reply or "")
    assert "核实" in (told.reply or "")


async def test_keeps_to_a_length_that_it_is_told() -> None:
    run = await answer(harness_files([VERIFY, "回复控制在 20 字以内。", "不要比价格"]), "防晒霜多少钱")
    assert len(run.reply or "") <= 20


async def test_the_same_request_brings_the_same_messages_usage_and_latency() -> None:
    first = await answer(harness_files([VERIFY]), firing_danmaku())
    second = await answer(harness_files([VERIFY]), firing_danmaku())
    assert dumped(first) == dumped(second)
    assert first.usage == second.usage
    assert [call.ms for call in first.calls] == [call.ms for call in second.calls]
    assert first.usage.prompt_tokens > 0


async def test_is_sent_nothing_of_what_is_expected() -> None:
    run = await answer(harness_files([VERIFY]), "防晒霜多少钱")
    assert "expected" not in dumped(run)
    assert "accept" not in dumped(run)


async def test_an_unknown_role_is_a_configuration_error() -> None:
    with pytest.raises(ChatError) as caught:
        await RehearsalModel().complete(ChatRequest("gpt-4o", [{"role": "user", "content": "hi"}]))
    assert caught.value.kind == "configuration"
