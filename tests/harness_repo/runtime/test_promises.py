import pytest

from harness_repo.runtime.promises import compared, find_promises, statements


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        ("这款绝对不过敏，放心拍", "绝对不过敏"),
        ("今天拍明天就能到哦", "明天就能到"),
        ("别担心，一定能送到的！", "一定能送到"),
        ("没问题，保证七天无理由退货哈", "保证七天无理由退货"),
        ("我们假一赔十", "假一赔十"),
        ("这是全网最低价了", "全网最低价"),
        ("支持终身质保哦", "终身质保"),
        ("不满意随时可以退", "随时可以退"),
        ("用了百分百有效", "百分百有效"),
        ("１００％有效呢", "100%有效"),
        ("肯定适合您吧，不是，肯定能用", "肯定能用"),
        ("下单马上发货", "马上发货"),
        ("不同肤质都能用，绝对安全", "绝对安全"),
        ("We guarantee it will arrive tomorrow.", "guarantee it will arrive tomorrow"),
        ("This is RISK-FREE, friends", "risk-free"),
        ("It is 100% effective!", "100% effective"),
        ("Comes with a lifetime warranty.", "lifetime warranty"),
        ("You can return it anytime", "return it anytime"),
        ("It will definitely fit you; order now", "will definitely fit you"),
        ("No worries: I promise you a refund", "promise you a refund"),
    ],
)
def test_a_promise_is_found(text: str, promise: str) -> None:
    assert promise in " ".join(find_promises(text, []))


@pytest.mark.parametrize(
    "text",
    [
        "3号链接现在89元，还剩12件。",
        "我们不能保证明天到，一般三到五天。",
        "这个没法保证哦",
        "不是绝对的，看个人肤质",
        "不一定能赶上",
        "保证金是10元",
        "100%棉，120g",
        "It is 100% cotton and costs $5.",
        "We cannot guarantee tomorrow's delivery.",
        "I can't promise that.",
        "包邮，包装完好，包含两件",
        "退货包运费",
        "不敢说一定能到",
        "Certainly! It is 12 yuan.",
        "",
    ],
)
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


def test_more_than_the_evidence_says_may_not() -> None:
    assert find_promises("保证明天送到", ["保证七天内送到"]) == ["保证明天送到"]


def test_each_promise_is_listed_once_and_in_order() -> None:
    assert find_promises("假一赔十！绝对正品。假一赔十", []) == ["假一赔十", "绝对正品"]


def test_a_harness_knows_more_promises_and_fewer() -> None:
    assert find_promises("宝妈闭眼入", [], ["闭眼入"]) == ["闭眼入"]
    assert find_promises("不要闭眼入", [], ["闭眼入"]) == []
    assert find_promises("支持随时可退的会员", [], allow=["随时可退的会员"]) == []
    assert find_promises("支持随时可退的会员，绝对正品", [], allow=["随时可退的会员"]) == ["绝对正品"]


def test_neither_a_rule_nor_a_viewer_makes_a_promise_true() -> None:
    prompt = "本店终身质保。\n不要说绝对有效这类话。\nNever say it is risk-free.\n- 能保证明天到吗\n"
    stated = statements(prompt, ["能保证明天到吗"])
    assert find_promises("终身质保", stated) == []
    said = "绝对有效。It is risk-free. 能保证明天到"
    assert find_promises(said, stated) == ["绝对有效", "risk-free", "保证明天到"]


def test_texts_are_compared_without_case_width_and_blanks() -> None:
    assert compared("ＡＢ  c 你 好 ok\n\tx") == "ab c你好ok\nx"
