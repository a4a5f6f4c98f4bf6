from dataclasses import replace

from harness_repo.format.harness import read_harness
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest
from harness_repo.runtime.native import NativeRunner
from harness_repo.runtime.runner import RunCase, Runner
from tests.harness_repo.build import FILES
from tests.harness_repo.runtime.scripted import ScriptedModel, call, load, say

HARNESS = read_harness(FILES)
FIXTURES = {"get_item": [{"arguments": {"link_id": 3}, "result": {"price": 89}}]}
CASE = RunCase("q1", {"danmaku": ["多少钱"]}, fixtures=FIXTURES)
ASKED = call(("get_item", {"link_id": 3}))


def runner(*answers: ChatReply | ChatError) -> Runner:
    return NativeRunner(HARNESS, ScriptedModel(list(answers)), "m")


async def test_a_case_is_answered_with_its_own_fixtures() -> None:
    run = await runner(load("item-qa"), ASKED, say("89")).run(CASE)
    assert (run.status, run.reply, run.tool_calls[-1].result) == ("ok", "89", {"price": 89})


async def test_the_faults_of_a_case_strike_and_follow_from_its_seed() -> None:
    case = replace(CASE, faults=[{"kind": "server_error", "tool": "get_item", "rate": 0.5}])
    struck = []
    for repeat in range(12):
        run = await runner(load("item-qa"), ASKED, say("89")).run(replace(case, repeat=repeat))
        struck.append(run.tool_calls[-1].fault)
    again = await runner(load("item-qa"), ASKED, say("89")).run(replace(case, repeat=5))
    assert set(struck) == {None, "server_error"}
    assert again.tool_calls[-1].fault == struck[5]


async def test_a_case_that_cannot_be_read_is_a_runner_error() -> None:
    for case in (replace(CASE, request={"danmaku": "x"}), replace(CASE, faults=[{"kind": "fire"}])):
        run = await runner().run(case)
        assert (run.status, run.error_kind) == ("runner_error", "case")


async def test_a_failing_model_is_a_model_error() -> None:
    run = await runner(ChatError("down", "connection")).run(CASE)
    assert (run.status, run.error_kind) == ("model_error", "connection")


class Broken:
    async def complete(self, request: ChatRequest) -> ChatReply:
        raise KeyError("choices" if request.messages else "messages")


async def test_what_a_client_raises_besides_is_the_error_of_this_run() -> None:
    run = await NativeRunner(HARNESS, Broken(), "m").run(CASE)
    assert (run.status, run.error) == ("runner_error", "KeyError: 'choices'")


class BreaksLater(ScriptedModel):
    async def complete(self, request: ChatRequest) -> ChatReply:
        if not self.answers:
            raise KeyError("choices")
        return await super().complete(request)


async def test_what_had_happened_before_a_client_broke_is_kept() -> None:
    run = await NativeRunner(HARNESS, BreaksLater([load("item-qa"), ASKED]), "m").run(CASE)
    assert (run.status, run.error) == ("runner_error", "KeyError: 'choices'")
    assert (run.skills_loaded, len(run.tool_calls), run.usage.prompt_tokens) == (["item-qa"], 2, 20)
    assert [message["role"] for message in run.messages[-4:]] == ["assistant", "tool", "assistant", "tool"]
