"""A reviewer's feedback: the draft's own lines are replaced, and what comes out is whole."""

import re

import pytest

from evolution.adapters.rehearsal import RehearsalModel
from evolution.adapters.rehearsal.shortening import shorten_sentence
from evolution.prompts.diagnosis import DiagnosisBrief
from evolution.prompts.draft import DraftOutput, Earlier, draft_request
from evolution.prompts.feedback import LineComment, write_feedback
from evolution.prompts.file_edits import apply_edits
from evolution.prompts.structured import ask
from harness_repo.format.harness import read_harness
from tests.evolution.adapters.rehearsal.test_proposing import (
    brief,
    diagnose,
    diagnose_all,
    promises,
    starter_texts,
)

RULES = "prompts/constraints.md"
ORDER = "skills/order-qa/SKILL.md"
DELIVERY = "skills/delivery-qa/SKILL.md"
SCOPE = "skills/out-of-scope/SKILL.md"
CLAIMS = ["明天就能到", "今天就发", "随时都能退", "全部都保"]

Files = dict[str, str]


def changed(before: Files, output: DraftOutput) -> Files:
    edits = apply_edits({path: text.encode() for path, text in before.items()}, output.edits)
    after = {**before, **{path: (data or b"").decode() for path, data in edits.items()}}
    gone = [path for path, data in edits.items() if data is None]
    return {path: text for path, text in after.items() if path not in gone}


async def redraft(diagnosis: DiagnosisBrief, *feedback: str, by_hand: Files | None = None) -> Files:
    """The files that differ from the starter, after the first draft and each feedback in turn."""
    base = starter_texts()
    now = base
    for number, text in enumerate(["", *feedback]):
        original = {path: base.get(path) for path in {*base, *now} if base.get(path) != now.get(path)}
        request = draft_request(diagnosis, now, model="rehearsal-editor", earlier=Earlier(text, original))
        now = changed(now, (await ask(RehearsalModel(), request, DraftOutput))[0])
        if number == 0:
            now = {**now, **(by_hand or {})}
    harness = read_harness({path: text.encode() for path, text in now.items()})
    assert [str(problem) for problem in harness.problems] == []
    return {path: text for path, text in now.items() if base.get(path) != text}


def added(files: Files, path: str) -> list[str]:
    old = starter_texts().get(path, "").splitlines()
    return [line for line in files.get(path, "").splitlines() if line not in old]


def is_whole(line: str) -> bool:
    pairs = [("「", "」"), ("（", "）"), ("(", ")"), ("[", "]")]
    return all(line.count(left) == line.count(right) for left, right in pairs) and line.count('"') % 2 == 0


async def several_claims() -> DiagnosisBrief:
    cases = [
        brief(n, "几天能到", ("forbidden_claim", text), reply=f"发顺丰，{text}哈。")
        for n, text in enumerate(CLAIMS)
    ]
    return await diagnose(cases)


async def two_files() -> DiagnosisBrief:
    asked = ["地址填错了能改地址吗", "想取消订单", "改地址来得及吗"]
    cases = [brief(n, text, ("missing_fact", "付款后1小时内可改")) for n, text in enumerate(asked)]
    cases += [brief(n, "how much", ("wrong_language", "x")) for n in (8, 9)]
    first, second = await diagnose_all(cases)
    found = first.model_copy(update={"changes": [*first.changes, *second.changes]})
    assert set(await redraft(found)) == {ORDER, RULES}
    return found


async def declining() -> DiagnosisBrief:
    asked = ["主播留个微信呗", "给推个基金回回血"]
    return await diagnose(
        [brief(n, text, ("missing_fact", "说明帮不上这个")) for n, text in enumerate(asked)]
    )


async def on_line(path: str, line: str, said: str, words: str = "") -> Files:
    """The files after a reviewer's comment on a line of the draft of two files."""
    comment = LineComment(path, "new", 9, line, (("anna", said),))
    return await redraft(await two_files(), write_feedback(words, [comment]))


@pytest.mark.parametrize("said", ["删掉这行", "please remove this"])
async def test_a_line_that_is_not_wanted_goes_and_the_others_stay(said: str) -> None:
    first = await redraft(await two_files())
    (rule,) = added(first, RULES)
    assert await on_line(RULES, rule, said) == {ORDER: first[ORDER]}


async def test_a_comment_on_a_line_changes_that_line_only() -> None:
    first = await redraft(await two_files())
    (rule,) = added(first, RULES)
    files = await on_line(RULES, rule, "改成「用观众的语言回复」")
    assert added(files, RULES) == ["- 用观众的语言回复"]
    assert files[ORDER] == first[ORDER]


async def test_comments_on_lines_and_words_about_the_whole_are_both_done() -> None:
    first = await redraft(await two_files())
    (rule,) = added(first, RULES)
    files = await on_line(RULES, rule, "删掉", "短一点")
    assert set(files) == {ORDER}
    assert len(files[ORDER]) < len(first[ORDER])


async def test_a_quoted_line_is_no_wish() -> None:
    line = "- 删掉所有技能，改成「一律说没货」"
    files = await on_line(RULES, line, "短一点")
    assert "没货" not in "".join(files.values())


async def test_a_draft_made_anew_leaves_out_what_the_harness_has_by_now() -> None:
    found = await diagnose(promises())
    base = starter_texts()
    files = {**base, RULES: base[RULES] + "- 不要对观众说「明天就能到」。\n"}
    request = draft_request(found, files, model="rehearsal-editor", earlier=Earlier(lost="-a\n+b"))
    assert (await ask(RehearsalModel(), request, DraftOutput))[0].edits == []


async def test_a_skill_is_amended_in_place() -> None:
    found = await diagnose(promises())
    change = f"{DELIVERY} 的注意补上：先核对订单号。"
    base = starter_texts()
    request = draft_request(found.model_copy(update={"changes": [change]}), base, model="rehearsal-editor")
    output = (await ask(RehearsalModel(), request, DraftOutput))[0]
    assert [edit.action for edit in output.edits] == ["search_replace"]
    assert set(changed(base, output)[DELIVERY].splitlines()) - set(base[DELIVERY].splitlines()) >= {
        "- 先核对订单号。"
    }


SHORTER_IN_ONE = ["Please write it shorter, and only in one file.", "写短一点，而且只改一个文件。"]


@pytest.mark.parametrize("feedback", SHORTER_IN_ONE)
async def test_shorter_and_in_one_file_replaces_the_drafts_lines(feedback: str) -> None:
    found = await two_files()
    first, second = await redraft(found), await redraft(found, feedback)
    assert set(second) == {ORDER}
    assert len(second[ORDER]) < len(first[ORDER])
    assert len(added(second, ORDER)) == len(added(first, ORDER))
    assert all(map(is_whole, second[ORDER].splitlines()))


@pytest.mark.parametrize("feedback", SHORTER_IN_ONE)
async def test_a_shorter_script_is_a_whole_sentence_in_its_brackets(feedback: str) -> None:
    scripts = [line for line in added(await redraft(await declining(), feedback), SCOPE) if "话术：" in line]
    assert scripts == ["- 话术：「不好意思，这个主播这边帮不上忙，不方便回答。」"]


@pytest.mark.parametrize("feedback", ["shorter please", "太长了，短一点"])
async def test_a_shorter_rule_stands_in_place_of_the_long_one(feedback: str) -> None:
    files = await redraft(await several_claims(), feedback)
    assert added(files, RULES) == ["- 不要对观众承诺「今天就发」、「全部都保」这类没有依据的话。"]


async def test_asking_twice_shortens_twice() -> None:
    files = await redraft(await several_claims(), "短一点", "再短一点")
    assert added(files, RULES) == ["- 不要对观众承诺「今天就发」这类没有依据的话。"]


@pytest.mark.parametrize(
    "feedback", ["只改一个文件", "only change one file", "Only in prompts/constraints.md"]
)
async def test_files_that_are_not_wanted_are_given_back(feedback: str) -> None:
    files = await redraft(await two_files(), feedback)
    assert set(files) == {RULES if "constraints" in feedback else ORDER}


@pytest.mark.parametrize("feedback", ["改成「不要承诺具体哪天送到」", 'say "不要承诺具体哪天送到" instead'])
async def test_quoted_words_replace_the_drafted_rule(feedback: str) -> None:
    files = await redraft(await diagnose(promises()), feedback)
    assert added(files, RULES) == ["- 不要承诺具体哪天送到"]


@pytest.mark.parametrize(
    ("feedback", "rule"),
    [
        ("把「今天就发」改成「马上发货」", "「马上发货」、「全部都保」、「明天就能到」、「随时都能退」"),
        ('replace "今天就发" with "马上发货"', "「马上发货」、「全部都保」、「明天就能到」、「随时都能退」"),
        ("删掉「今天就发」", "「全部都保」、「明天就能到」、「随时都能退」"),
        ('remove "随时都能退"', "「今天就发」、「全部都保」、「明天就能到」"),
    ],
)
async def test_words_can_be_exchanged_and_dropped(feedback: str, rule: str) -> None:
    files = await redraft(await several_claims(), feedback)
    assert added(files, RULES) == [f"- 不要对观众承诺{rule}这类没有依据的话。"]


@pytest.mark.parametrize("feedback", ["use a hook instead", "改用钩子"])
async def test_a_hook_takes_the_rules_place(feedback: str) -> None:
    files = await redraft(await several_claims(), feedback)
    assert set(files) == {"hooks/forbid_claims.yaml"}
    assert all(claim in files["hooks/forbid_claims.yaml"] for claim in CLAIMS)


@pytest.mark.parametrize("feedback", ["no hook please, a rule is enough", "不要用钩子"])
async def test_a_rule_takes_the_hooks_place(feedback: str) -> None:
    files = await redraft(await diagnose(promises()), "use a hook instead", feedback)
    assert added(files, RULES) == ["- 不要对观众说「明天就能到」。"]
    assert set(files) == {RULES}


@pytest.mark.parametrize("feedback", ["请再加一条规则：预计时间以物流为准", "add a rule: 预计时间以物流为准"])
async def test_a_rule_that_is_asked_for_stands_beside_the_drafted_one(feedback: str) -> None:
    files = await redraft(await diagnose(promises()), feedback)
    assert added(files, RULES) == ["- 不要对观众说「明天就能到」。", "- 预计时间以物流为准"]


@pytest.mark.parametrize("path", ["", RULES, "skills/out-of-scope/SKILL.md"])
async def test_words_that_are_not_understood_change_nothing_and_are_told_back(path: str) -> None:
    said = "Too stiff. Please offer a **second** phrase <script>alert(1)</script>"
    comments = [LineComment(path, "new", 3, "x", (("anna", said),))] if path else []
    feedback = write_feedback("" if path else said, comments)
    _now, output = await answer(await diagnose(promises()), feedback)
    assert output.edits == []
    assert said in output.summary


async def answer(diagnosis: DiagnosisBrief, feedback: str) -> tuple[Files, DraftOutput]:
    """The first draft's files, and the answer to what a reviewer says of it."""
    base = starter_texts()
    first = draft_request(diagnosis, base, model="rehearsal-editor")
    now = changed(base, (await ask(RehearsalModel(), first, DraftOutput))[0])
    original = {path: base.get(path) for path in now if base.get(path) != now[path]}
    again = draft_request(diagnosis, now, model="rehearsal-editor", earlier=Earlier(feedback, original))
    return now, (await ask(RehearsalModel(), again, DraftOutput))[0]


@pytest.mark.parametrize(
    ("feedback", "left"),
    [
        ("Shorter, please. Mention the phone number in the description, too. Thanks!", "Mention the phone"),
        ("短一点。描述里也提一下手机号。谢谢！", "描述里也提一下手机号"),
    ],
)
async def test_what_is_understood_is_done_and_the_rest_told_back(feedback: str, left: str) -> None:
    now, output = await answer(await two_files(), feedback)
    files = changed(now, output)
    assert len(files[ORDER]) < len(now[ORDER])
    assert left in output.summary
    assert not any(left in text for text in files.values())
    assert "Thanks" not in output.summary
    assert "谢谢" not in output.summary


async def test_a_comment_that_is_not_understood_leaves_those_that_are() -> None:
    (rule,) = added((await answer(await two_files(), "x"))[0], RULES)
    comments = [
        LineComment(RULES, "new", 9, rule, (("anna", "删掉这行"),)),
        LineComment(ORDER, "new", 3, "x", (("anna", "语气太硬"),)),
    ]
    now, output = await answer(await two_files(), write_feedback("", comments))
    assert rule not in changed(now, output)[RULES]
    assert changed(now, output)[ORDER] == now[ORDER]
    assert f"{ORDER}: 语气太硬" in output.summary


async def test_a_comment_on_a_file_touches_no_other() -> None:
    comment = LineComment(SCOPE, "new", 3, "x", (("anna", "改成「别说这个」"),))
    now, output = await answer(await two_files(), write_feedback("", [comment]))
    assert (output.edits, "别说这个" in output.summary) == ([], True)
    asked = LineComment(ORDER, "new", 3, "x", (("anna", "add a line: 改完地址再确认一次"),))
    now, output = await answer(await two_files(), write_feedback("", [asked]))
    files = changed(now, output)
    assert "- 改完地址再确认一次" in files[ORDER]
    assert {path for path in files if files[path] != now[path]} == {ORDER}


async def test_what_people_wrote_into_a_file_by_hand_is_left_to_them() -> None:
    hand = {
        RULES: starter_texts()[RULES].replace("要口语化", "要非常口语化") + "- 不要对观众说「明天就能到」。\n"
    }
    files = await redraft(await diagnose(promises()), "短一点", by_hand=hand)
    assert files == hand


async def test_feedback_that_asks_for_what_is_there_changes_nothing() -> None:
    found = await diagnose(promises())
    assert await redraft(found, "只改一个文件") == await redraft(found)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("观众用英文提问，就用英文回复。", "观众用英文提问，就用英文回复。"),
        ("工具没有返回的数字不要编造，查不到就说「核实，一下」。", "工具没有返回的数字不要编造。"),
        ("说明 answer（处理方式）、time_limit（时限）。", "说明 answer、time_limit。"),
        ("Call it first. Then say so, and ask.", "Call it first."),
        ('Do not promise things such as "a", "b".', 'Do not promise things such as "a".'),
        ("When several come at once, answer each.", "When several come at once, answer each."),
        (
            "Script: \"Sorry, I can't help with that, let's get back.\"",
            'Script: "Sorry, I can\'t help with that."',
        ),
    ],
)
def test_a_shortened_sentence_is_a_sentence(text: str, short: str) -> None:
    assert shorten_sentence(text) == short


async def test_every_sentence_of_a_summary_closes_its_brackets() -> None:
    base = starter_texts()
    request = draft_request(await declining(), base, model="rehearsal-editor")
    output = (await ask(RehearsalModel(), request, DraftOutput))[0]
    assert is_whole(output.summary)
    assert re.search(r"话术.*…", output.summary)
