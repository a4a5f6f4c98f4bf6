"""The rehearsal user, asked as the runtime asks any model that plays the user."""

from typing import Any

import pytest

from evolution.adapters.rehearsal import RehearsalModel
from harness_repo.runtime.simulated_user import SimulatedUser, read_profile

GOAL = "问清楚3号链接的券后价；再了解什么时候发货。不要太贵"


def make_user(goal: str = GOAL, **fields: Any) -> SimulatedUser:
    profile = read_profile({"user": {"persona": "说话干脆", "goal": goal, **fields}})
    return SimulatedUser(profile, RehearsalModel(), "rehearsal-user", 7)


async def talk(user: SimulatedUser, *replies: str) -> list[tuple[str, bool]]:
    lines = [await user.speak()]
    for reply in replies:
        user.note_reply(reply)
        lines.append(await user.speak())
    return [(line.say, line.done) for line in lines]


async def test_parts_of_the_goal_come_one_after_the_other() -> None:
    assert await talk(make_user(), "券后价89元哈。", "48小时内发货哈。", "今天最低价。") == [
        ("请问3号链接的券后价？", False),
        ("请问什么时候发货？", False),
        ("不要太贵", False),
        ("好的，谢谢！", True),
    ]


async def test_english_goal_is_pursued_in_english() -> None:
    user = make_user("Learn the price of link 3. Then ask about shipping, 9.9 is too much")
    assert await talk(user, "It is 89.", "It ships within 2 days.") == [
        ("Could you tell me the price of link 3?", False),
        ("Could you tell me shipping, 9.9 is too much?", False),
        ("Thanks!", True),
    ]


@pytest.mark.parametrize(
    ("goal", "questions"),
    [
        ("问清3号链接还有没有货，再问多少钱", ["请问3号链接还有没有货？", "请问多少钱？"]),
        ("先问一下能不能退，然后问运费谁出，最后问几天到账",
         ["请问能不能退？", "请问运费谁出？", "请问几天到账？"]),
        ("问3号多少钱接着问几号发货", ["请问3号多少钱？", "请问几号发货？"]),
        ("再便宜点就买，然后呢", ["再便宜点就买，然后呢"]),
        ("Ask whether link 3 is in stock and then ask how much it is",
         ["Could you tell me whether link 3 is in stock?", "Could you tell me how much it is?"]),
        ("Find out if it is waterproof, then whether it comes in red; and also the price",
         ["Could you tell me if it is waterproof?", "Could you tell me whether it comes in red?",
          "Could you tell me the price?"]),
        ("ask whether it was cheaper then than now", ["Could you tell me whether it was cheaper then than now?"]),
    ],
)  # fmt: skip
async def test_tasks_within_a_sentence_are_asked_one_after_the_other(goal: str, questions: list[str]) -> None:
    said = await talk(make_user(goal), *["有的哈。"] * len(questions))

    assert [line for line, done in said if not done] == questions


@pytest.mark.parametrize("reply", ["这个我核实一下再告诉您。", "这个不能透露哦。", "I can't say."])
async def test_refusal_ends_it(reply: str) -> None:
    assert (await talk(make_user(), reply))[-1] == ("好吧。", True)


async def test_phrase_of_the_stop_rule_ends_it() -> None:
    assert (await talk(make_user(stop="听到「加购」就走"), "喜欢就先加购哈。"))[-1] == ("好吧。", True)
    assert (await talk(make_user(stop="听到「加购」就走"), "券后价89元哈。"))[-1][1] is False


async def test_first_line_of_the_case_is_the_first_part() -> None:
    user = make_user()
    user.note_line("3号多少钱")
    user.note_reply("券后价89元哈。")
    assert (await user.speak()).say == "请问什么时候发货？"


async def test_same_conversation_again_is_the_same() -> None:
    assert await talk(make_user(), "89元。") == await talk(make_user(), "89元。")
