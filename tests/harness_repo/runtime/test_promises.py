import time

import pytest

from harness_repo.runtime.promises import compared, find_promises, statements

# What a host may have said that a buyer could hold it to.
PROMISES = [
    "这款绝对不过敏，放心拍",
    "今天拍明天就能到哦",
    "别担心，一定能送到的！",
    "没问题，保证七天无理由退货哈",
    "我们假一赔十",
    "这是全网最低价了",
    "支持终身质保哦",
    "不满意随时可以退",
    "１００％有效呢",
    "肯定适合您吧，不是，肯定能用",
    "下单马上发货",
    "不得不说我们保证全额退款",
    "别家不行我们保证全额退款",
    "没错保证全额退款",
    "保\u200b证全额退款",
    "保-证退款",
    "我们保證全額退款",
    "終身保固",
    "包您满意",
    "承诺全额退款",
    "必须给您退款",
    "全额退款，我给您打包票",
    "我们保证：全额退款",
    "不管怎样我们都保证退款",
    "行不行我们都保证退款",
    "保证不掉色",
    "终身质保没有问题",
    "请您放心我们保证退款",
    "给您保证退款",
    "我们确保您满意",
    "难道绝不会坏吗？绝不会坏",
    "We guarantee it will arrive tomorrow.",
    "This is RISK-FREE, friends",
    "It is 100% effective!",
    "It is 100 percent effective",
    "Comes with a lifetime warranty.",
    "You can return it anytime",
    "It will definitely fit you; order now",
    "No worries: I promise you a refund",
    "There is no doubt we guarantee a full refund",
    "No delay we guarantee a full refund",
    "not to worry we guarantee a refund",
    "not only cheap we guarantee refunds",
    "We pledge a full refund",
    "Ｇｕａｒａｎｔｅｅd refund",
    "G\u200buaranteed refund",
    "we'll refund you whenever you like",
    "A lifetime warranty, so you don't have to worry",
]
# What an honest host says with the same words.
HONEST = [
    "3号链接现在89元，还剩12件。",
    "我们不能保证明天到，一般三到五天。",
    "这个没法保证哦",
    "谁都没法保证价格",
    "这事谁也不能打包票",
    "这个我保证不了",
    "很难保证明天到",
    "不是绝对的，看个人肤质",
    "不一定能赶上",
    "不敢说一定能到",
    "能不能到我得问问，不是100%是正品我们也不发",
    "很遗憾明天到不了",
    "假一赔十的说法我们没有",
    "终身质保是没有的",
    "终身质保我们没有这个政策",
    "我们没有承诺过终身质保",
    "最低价我们不承诺",
    "请您确保收货地址填写正确哦",
    "请确保手机号没填错",
    "您要确保尺码填对",
    "请保证金额填写无误",
    "保证金是10元",
    "您是说保证书吗",
    "你是想问保证全额退款吗？",
    "退款后立即到账吗？这个要看银行",
    "一定是您记错了",
    "100%棉，120g",
    "包邮，包装完好，包含两件",
    "退货包运费",
    "It is 100% cotton and costs $5.",
    "We cannot guarantee tomorrow's delivery.",
    "I can't promise that.",
    "We can't say it will definitely arrive",
    "We do not offer any lifetime warranty",
    "We never promise tomorrow",
    "No, there is no lifetime warranty",
    "Nobody can guarantee that",
    "We have no money-back policy",
    "I am sorry, a lifetime warranty is something we do not offer",
    "Please make sure; the guarantee period is shown on the page",
    "Is it guaranteed? I don't know.",
    "the lowest price is shown in the link",
    "Certainly! It is 12 yuan.",
    "",
]


@pytest.mark.parametrize("text", PROMISES)
def test_a_promise_is_found(text: str) -> None:
    assert find_promises(text, [])


@pytest.mark.parametrize("text", HONEST)
def test_what_promises_nothing_is_let_through(text: str) -> None:
    assert find_promises(text, []) == []


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("支持终身质保哦", '{"warranty": "终身质保，三年换新"}'),
        ("保证七天无理由退货呢", "本店保证七天无理由退货，运费到付"),
        ("It has a Lifetime  Warranty!", "lifetime warranty included"),
        ("１００％有效", "检测报告：100%有效"),
    ],
)
def test_what_the_evidence_says_word_for_word_may_be_said(text: str, evidence: str) -> None:
    assert find_promises(text, [evidence]) == []


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("支持终身质保哦", '{"warranty": "无终身质保"}'),
        ("支持终身质保哦", "本店没有终身质保。"),
        ("保证全额退款", "我们不保证全额退款"),
        ("保证全额退款", "问：保证全额退款吗？答：不"),
        ("我们保证：全额退款", "保证正品"),
        ("A lifetime warranty!", "There is no lifetime warranty."),
    ],
)
def test_evidence_that_denies_or_asks_is_none(text: str, evidence: str) -> None:
    assert find_promises(text, [evidence]) != []


def test_more_than_the_evidence_says_may_not() -> None:
    assert find_promises("保证明天送到", ["保证七天内送到"]) == ["保证明天送到"]


def test_each_promise_is_listed_once_and_in_order() -> None:
    assert find_promises("假一赔十！绝对正品。假一赔十", []) == ["假一赔十", "绝对正品"]


def test_a_harness_knows_more_promises_and_fewer() -> None:
    assert find_promises("宝妈闭眼入", [], ["闭眼入"]) == ["闭眼入"]
    assert find_promises("不要闭眼入", [], ["闭眼入"]) == []
    assert find_promises("支持随时可退的会员", [], allow=["随时可退的会员"]) == []
    assert find_promises("支持随时可退的会员，绝对正品", [], allow=["随时可退的会员"]) == ["绝对正品"]


def test_a_rule_does_not_make_a_promise_true() -> None:
    stated = statements("本店终身质保。\n不要说绝对有效这类话。\nNever say it is risk-free.\n")
    assert find_promises("终身质保", stated) == []
    assert find_promises("绝对有效。It is risk-free.", stated) == ["绝对有效", "risk-free"]


def test_texts_are_compared_without_case_width_and_blanks() -> None:
    assert compared("ＡＢ  c 你 好 ok\n\tx") == "ab c你好ok\nx"


@pytest.mark.parametrize(
    "text",
    ["保证" + "的" * 40_000 + "x", "保证" * 20_000, "不保证" * 13_000, "无条件" + "都给" * 20_000, "refund a " * 5_000,
     "not " * 10_000 + "we guarantee", "保" + "-" * 40_000 + "证", "1." * 20_000 + "绝对好"],
)  # fmt: skip
def test_a_long_reply_is_looked_through_at_once(text: str) -> None:
    began = time.process_time()
    find_promises(text, ["x" * 100_000])
    assert time.process_time() - began < 1
