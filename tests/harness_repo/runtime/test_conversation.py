import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import jsonschema
import pytest

from harness_repo.format.harness import read_harness
from harness_repo.format.json_schema import load_schema
from harness_repo.runtime.chat import ChatError, ChatReply, Usage
from harness_repo.runtime.conversation import run_conversation
from harness_repo.runtime.native import NativeRunner
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.simulated_user import read_profile
from harness_repo.runtime.trajectory import Exchange, Status, Trajectory
from tests.harness_repo.build import FILES
from tests.harness_repo.runtime.scripted import ScriptedModel, call, load, say

USER = {
    "persona": "A thrifty viewer.",
    "goal": "Know the price of item 3.",
    "stop": "It is rude.",
    "turns": 3,
}
CASE = RunCase("talk-1", {"user": USER}, commit="c" * 40, seed=7)


def line(text: str, *, done: bool = False) -> ChatReply:
    return say(json.dumps({"say": text, "done": done}, ensure_ascii=False))


@dataclass
class Agent:
    """An agent that is not ours: it tells its replies alone, and keeps what it was given."""

    answers: list[Trajectory]
    cases: list[RunCase] = field(default_factory=list)

    async def run(self, case: RunCase) -> Trajectory:
        self.cases.append(case)
        return self.answers.pop(0)


def replies(*texts: str, status: Status = "ok") -> Agent:
    return Agent([Trajectory(status, text) for text in texts])


async def talk(
    agent: Agent, *answers: ChatReply | ChatError, **request: object
) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(list(answers))
    case = replace(CASE, request={**CASE.request, **request})
    return await run_conversation(agent.run, case, model, "user-1"), model


async def test_user_and_agent_take_turns_until_the_user_is_done() -> None:
    agent = replies("89.", "Two days.")
    run, _ = await talk(agent, line("How much?"), line("And delivery?"), line("Thanks", done=True))
    assert (run.status, run.reply, run.error) == ("ok", "Two days.", None)
    assert run.conversation == [
        Exchange("How much?", "89.", "ok"),
        Exchange("And delivery?", "Two days.", "ok"),
        Exchange("Thanks", None, "done"),
    ]
    assert run.replies() == ["89.", "Two days."]


async def test_the_agent_is_given_what_was_said_and_never_the_user_behind_it() -> None:
    agent = replies("89.", "Two days.")
    await talk(agent, line("How much?"), line("And delivery?"), line("", done=True), lane="a")
    second = agent.cases[1]
    assert second.request == {
        "danmaku": [{"user": "", "text": "And delivery?"}],
        "history": [{"role": "user", "content": "How much?"}, {"role": "assistant", "content": "89."}],
        "lane": "a",
    }
    assert [case.seed for case in agent.cases] == [7, 8]
    assert "thrifty" not in json.dumps([case.to_dict() for case in agent.cases])


async def test_the_user_sees_its_part_its_own_lines_and_the_replies() -> None:
    _, model = await talk(replies("89."), line("How much?"), line("", done=True))
    system, begin, own, reply = model.requests[1].messages
    for text in (USER["persona"], USER["goal"], USER["stop"]):
        assert str(text) in str(system["content"])
    assert (begin["role"], own["role"], reply) == (
        "user", "assistant", {"role": "user", "content": "89."},
    )  # fmt: skip
    assert json.loads(own["content"]) == {"say": "How much?", "done": False}
    assert (model.requests[1].model, model.requests[1].parameters) == ("user-1", {"seed": 7})


async def test_the_user_is_asked_for_json_that_a_schema_describes() -> None:
    _, model = await talk(replies("89."), line("How much?"), line("", done=True))
    asked = model.requests[0].response_schema
    assert asked is not None
    jsonschema.validate({"say": "x", "done": False}, asked["schema"])


async def test_a_case_may_give_the_first_danmaku() -> None:
    agent = replies("89.")
    danmaku = [{"user": "Ann", "text": "Hi"}, {"user": "Bo", "text": "How much?"}]
    history = [{"role": "user", "content": "earlier"}]
    run, model = await talk(agent, line("Bye", done=True), danmaku=danmaku, history=history)
    assert agent.cases[0].request == {"danmaku": danmaku, "history": history}
    assert run.conversation[0] == Exchange("Hi\nHow much?", "89.", "ok")
    assert len(model.requests) == 1


async def test_turns_run_out_on_a_user_who_is_not_done() -> None:
    agent = replies("1", "2", "3")
    run, _ = await talk(agent, *[line(f"q{n}") for n in range(4)])
    assert (run.status, run.reply, len(agent.cases)) == ("turn_limit", "3", 3)
    assert run.conversation[-1] == Exchange("q3", None, "turn_limit")
    assert run.error == "the user was not done after 3 replies"


@pytest.mark.parametrize("status", ["hook_limit", "time_limit", "model_error", "runner_error"])
async def test_a_failure_of_the_agent_ends_it_with_that_status(status: Status) -> None:
    failed = Trajectory(status, None, error="boom", error_kind="server")
    agent = Agent([Trajectory("ok", "89."), failed])
    run, model = await talk(agent, line("How much?"), line("And delivery?"))
    assert (run.status, run.error, run.error_kind) == (status, "boom", "server")
    assert (run.reply, run.conversation[-1]) == ("89.", Exchange("And delivery?", None, status))
    assert len(model.requests) == 2


async def test_a_blocked_reply_is_a_reply() -> None:
    agent = Agent([Trajectory("blocked", "Later."), Trajectory("ok", "89.")])
    run, _ = await talk(agent, line("How much?"), line("Now?"), line("", done=True))
    assert (run.status, [each.status for each in run.conversation]) == ("ok", ["blocked", "ok"])


async def test_a_line_that_is_no_json_is_asked_for_once_more() -> None:
    run, model = await talk(replies("89."), say("How much?"), line("How much?"), line("", done=True))
    assert (run.status, run.conversation[0].user) == ("ok", "How much?")
    assert [message["content"] for message in model.requests[1].messages][2] == "How much?"
    # What was repaired does not stay in the talk.
    assert len(model.requests[2].messages) == 4
    assert [(made.turn, made.prompt_tokens) for made in run.user_calls] == [(1, 10), (1, 10), (2, 10)]


@pytest.mark.parametrize("bad", ["no json", '{"say": "", "done": false}', '{"say": 3, "done": false}', "[]"])
async def test_a_user_who_says_nothing_that_fits_is_an_error_of_the_user(bad: str) -> None:
    run, _ = await talk(replies("89."), line("How much?"), say(bad), say(bad))
    assert (run.status, run.error_kind, run.reply) == ("user_error", "bad_response", "89.")


async def test_a_failing_user_model_is_an_error_of_the_user() -> None:
    run, _ = await talk(replies(), ChatError("429", "rate_limit"))
    assert (run.status, run.error, run.error_kind) == ("user_error", "the simulated user: 429", "rate_limit")


async def test_what_the_users_client_raises_besides_is_an_error_of_the_user() -> None:
    # The list of answers is empty, which is an IndexError.
    run, _ = await talk(replies())
    assert (run.status, run.error) == ("user_error", "the simulated user: IndexError: pop from empty list")


async def test_a_user_who_leaves_at_once_is_an_error() -> None:
    run, _ = await talk(replies(), line("", done=True))
    assert (run.status, run.conversation) == ("user_error", [])


@pytest.mark.parametrize(
    ("user", "path"),
    [
        ("Ann", "$.user"),
        ({}, "$.user"),
        ({"persona": "x", "goal": ""}, "$.user.goal"),
        ({"persona": "x", "goal": "y", "turns": 0}, "$.user.turns"),
        ({"persona": "x", "goal": "y", "mood": "z"}, "$.user"),
    ],
)
async def test_a_user_that_is_none_is_named_with_its_path(user: object, path: str) -> None:
    run, _ = await talk(replies(), user=user)
    assert (run.status, run.error_kind) == ("user_error", "case")
    assert str(run.error).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("user", "is_chinese"),
    [
        ({"persona": "p", "goal": "问清价格"}, True),
        ({"persona": "p", "goal": "问清价格", "language": "en"}, False),
        ({"persona": "p", "goal": "the price"}, False),
        ({"persona": "p", "goal": "the price", "language": "zh-CN"}, True),
    ],
)
def test_the_user_writes_the_language_of_its_goal_or_the_one_it_is_given(
    user: Mapping[str, str], *, is_chinese: bool
) -> None:
    profile = read_profile({"user": user})
    assert (profile.is_chinese, profile.turns) == (is_chinese, 6)


async def test_our_runtime_converses_and_its_turns_are_numbered_through() -> None:
    policy = ScriptedModel(
        [load("item-qa"), call(("get_item", {"link_id": 3})), say("89元"), load("item-qa"), say("两天")]
    )
    runner = NativeRunner(read_harness(FILES), policy, "m")
    case = replace(CASE, fixtures={"get_item": [{"arguments": {}, "result": {"price": 89}}]})
    user = ScriptedModel([line("多少钱"), line("多久到"), line("", done=True)])
    run = await run_conversation(runner.run, case, user, "u")
    assert (run.status, run.replies()) == ("ok", ["89元", "两天"])
    assert [made.turn for made in run.calls] == [1, 2, 3, 4, 5]
    assert [(made.turn, made.name) for made in run.tool_calls] == [
        (1, "load_skill"), (2, "get_item"), (4, "load_skill"),
    ]  # fmt: skip
    assert (run.skills_loaded, run.usage) == (["item-qa"], Usage(50, 25, 10))
    assert run.evidence() == [{"tool": "get_item", "arguments": {"link_id": 3}, "result": {"price": 89}}]
    jsonschema.validate(json.loads(json.dumps(run.to_dict())), load_schema("trajectory"))


def test_a_case_as_it_is_sent_fits_its_schema() -> None:
    case = replace(
        CASE,
        request={**CASE.request, "danmaku": [{"user": "a", "text": "b"}], "history": []},
        fixtures={"find": ({"arguments": {}, "result": 1},)},
        faults=({"kind": "timeout", "tool": "find", "rate": 0.5},),
    )
    jsonschema.validate(json.loads(json.dumps(case.to_dict())), load_schema("case"))
    jsonschema.validate({**case.to_dict(), "request": case.request}, load_schema("case"))


async def test_the_user_says_in_which_trial_it_speaks() -> None:
    model = ScriptedModel([line("How much is item 3?"), line("Thanks", done=True)])
    await run_conversation(replies("89").run, replace(CASE, repeat=2), model, "user-1")
    assert [request.repeat for request in model.requests] == [2, 2]
