import json
from dataclasses import replace

import jsonschema
import pytest

from harness_repo.format.harness import Harness, Limits, read_harness
from harness_repo.format.hooks import Hook, OnFail, Substitution
from harness_repo.format.json_schema import load_schema
from harness_repo.format.prompts import PromptSection
from harness_repo.runtime.agent import run_agent
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest
from harness_repo.runtime.context import build_variables
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.runtime.trajectory import Trajectory
from tests.harness_repo.build import FILES
from tests.harness_repo.runtime.scripted import ScriptedModel, call, load, say, tool_contents

HARNESS = read_harness(FILES)
FIXTURES = {"get_item": [{"arguments": {"link_id": 3}, "result": {"price": 89}}]}
REQUEST = {"danmaku": [{"user": "a", "text": "3号链接多少钱？"}], "history": []}

Answer = ChatReply | ChatError | float


async def run(harness: Harness, *answers: Answer) -> tuple[Trajectory, list[ChatRequest]]:
    model = ScriptedModel(list(answers))
    sandbox = ToolSandbox(harness.tools, FIXTURES)
    trajectory = await run_agent(
        harness, build_variables(REQUEST, {}), model, model_name="m", sandbox=sandbox
    )
    return trajectory, model.requests


def with_limits(**limits: float) -> Harness:
    return replace(HARNESS, limits=replace(HARNESS.limits, **limits))  # type: ignore[arg-type]  # int and float both


def with_hook(event: str, check: dict[str, object], on_fail: OnFail, when: str | None = None) -> Harness:
    return replace(HARNESS, hooks=[Hook("h", event, when, check, on_fail)])  # type: ignore[arg-type]  # tests name events as text


async def test_skill_tool_and_reply_make_the_run_of_the_mission() -> None:
    trajectory, _ = await run(
        HARNESS, load("item-qa"), call(("get_item", {"link_id": 3})), say("现在89元哈。")
    )
    assert (trajectory.status, trajectory.reply) == ("ok", "现在89元哈。")
    assert trajectory.skills_loaded == ["item-qa"]
    assert [message["role"] for message in trajectory.messages] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert trajectory.evidence() == [
        {"tool": "get_item", "arguments": {"link_id": 3}, "result": {"price": 89}}
    ]


async def test_the_request_carries_tools_parameters_and_all_messages_so_far() -> None:
    _, requests = await run(HARNESS, load("item-qa"), say("89"))
    assert [tool["function"]["name"] for tool in requests[0].tools] == ["load_skill", "get_item"]
    assert (requests[0].model, requests[0].parameters) == ("m", {"temperature": 0})
    assert [len(request.messages) for request in requests] == [2, 4]
    assert requests[1].messages[3]["content"] == HARNESS.skills["item-qa"].body


async def test_tokens_and_times_add_up() -> None:
    trajectory, _ = await run(HARNESS, load("item-qa"), say("89"))
    assert trajectory.to_dict()["usage"] == {"prompt_tokens": 20, "completion_tokens": 10, "cached_tokens": 4}
    assert trajectory.latency_ms == pytest.approx(200, abs=50)
    assert [(made.turn, made.model) for made in trajectory.calls] == [(1, "scripted-1"), (2, "scripted-1")]


async def test_the_trajectory_is_json_with_the_fields_of_the_format() -> None:
    trajectory, _ = await run(HARNESS, load("item-qa"), say("89"))
    record = json.loads(json.dumps(trajectory.to_dict(), ensure_ascii=False))
    assert record["format"] == "trajectory/1"
    assert set(record) == {
        "format", "status", "reply", "messages", "skills_loaded", "tool_calls", "hooks", "calls", "usage",
        "latency_ms", "finish_reason", "error", "error_kind", "retries", "conversation", "user_calls", "runner",
    }  # fmt: skip
    assert set(record["tool_calls"][0]) == {
        "turn", "id", "name", "arguments", "result", "error", "ms", "fault",
    }  # fmt: skip
    jsonschema.validate(record, load_schema("trajectory"))


async def test_a_trajectory_can_be_stored_whatever_the_model_wrote() -> None:
    trajectory, _ = await run(
        HARNESS, load("item-qa"), call(("get_item", '{"x": "\\u0000\\ud800"}')), say("a\0b\ud800")
    )
    record = trajectory.to_dict()
    assert record["reply"] == "a\ufffdb\ufffd"
    assert record["tool_calls"][1]["arguments"] == {"x": "\ufffd\ufffd"}
    json.dumps(record, ensure_ascii=False).encode()


async def test_calls_of_one_turn_are_all_answered_in_order() -> None:
    answer = call(
        ("load_skill", {"name": "item-qa"}), ("get_item", {"link_id": 3}), ("get_item", {"link_id": 4})
    )
    trajectory, requests = await run(HARNESS, answer, say("89"))
    assert [message["tool_call_id"] for message in requests[1].messages[3:]] == ["c1", "c2", "c3"]
    assert [(made.turn, made.error) for made in trajectory.tool_calls] == [
        (1, None),
        (1, None),
        (1, "not_found"),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("get_item", {"link_id": 9}, "not_found"),
        ("get_item", {"link_id": "3"}, "bad_arguments: $.link_id: '3' is not of type 'integer'"),
        ("get_item", '{"link_id": 3', "bad_arguments: Expecting ',' delimiter: line 1 column 14 (char 13)"),
        ("get_item", "[3]", "bad_arguments: the arguments are not a JSON object"),
        ("get_items", {}, "unknown_tool: there is get_item"),
        ("load_skill", {"name": "nowhere"}, "unknown_skill: there is item-qa"),
        ("load_skill", {}, "bad_arguments: name is missing"),
    ],
)
async def test_a_bad_call_goes_back_to_the_model_and_is_recorded(
    name: str, arguments: object, error: str
) -> None:
    trajectory, requests = await run(HARNESS, call((name, arguments)), load("item-qa"), say("89"))
    assert trajectory.status == "ok"
    assert trajectory.tool_calls[0].error == error
    assert tool_contents(requests[1].messages) == [json.dumps({"error": error}, ensure_ascii=False)]


async def test_a_reply_without_a_reply_skill_is_asked_for_again() -> None:
    trajectory, requests = await run(HARNESS, say("89"), load("item-qa"), say("89元"))
    assert (trajectory.status, trajectory.reply) == ("ok", "89元")
    last = requests[1].messages[-1]
    assert last["role"] == "user"
    assert last["content"].endswith("Load a reply skill before replying: item-qa")
    assert ("reply_skill_required", "retry") in [(hook.hook, hook.outcome) for hook in trajectory.hooks]


async def test_a_harness_may_switch_the_reply_skill_off() -> None:
    trajectory, _ = await run(replace(HARNESS, reply_skill_required=False), say("89"))
    assert (trajectory.status, trajectory.reply) == ("ok", "89")


async def test_a_hook_that_still_fails_ends_the_run_with_the_last_reply() -> None:
    trajectory, requests = await run(HARNESS, load("item-qa"), say("长" * 30), say("还是长" * 10))
    assert (trajectory.status, trajectory.reply) == ("hook_limit", "还是长" * 10)
    assert requests[2].messages[-1]["content"].endswith("\n- 太长了")
    assert [hook.turn for hook in trajectory.hooks if hook.outcome == "retry"] == [2, 3]


async def test_an_empty_reply_is_asked_for_again() -> None:
    trajectory, _ = await run(HARNESS, load("item-qa"), say(None), say("89"))
    assert (trajectory.status, trajectory.reply) == ("ok", "89")


async def test_turns_run_out() -> None:
    trajectory, requests = await run(HARNESS, *[load("item-qa") for _ in range(4)])
    assert (trajectory.status, trajectory.reply, len(requests)) == ("turn_limit", None, 4)


async def test_tool_calls_run_out_but_every_call_is_answered() -> None:
    answer = call(*[("get_item", {"link_id": 3}) for _ in range(4)])
    trajectory, requests = await run(HARNESS, load("item-qa"), answer)
    assert (trajectory.status, len(requests)) == ("tool_call_limit", 2)
    errors = [made.error for made in trajectory.tool_calls]
    assert errors == [None, None, None, None, "limit: at most 3 calls"]
    assert len(tool_contents(trajectory.messages)) == 5


async def test_time_runs_out_and_what_happened_stays() -> None:
    trajectory, _ = await run(with_limits(seconds=0.05), load("item-qa"), 5.0)
    assert (trajectory.status, trajectory.skills_loaded) == ("time_limit", ["item-qa"])


async def test_a_failing_model_is_a_status_with_its_kind() -> None:
    trajectory, _ = await run(HARNESS, load("item-qa"), ChatError("429", "rate_limit", retryable=True))
    record = trajectory.to_dict()
    assert (record["status"], record["error"], record["error_kind"]) == ("model_error", "429", "rate_limit")
    assert record["skills_loaded"] == ["item-qa"]


async def test_a_prompt_that_cannot_be_assembled_is_a_status_too() -> None:
    section = PromptSection("role", "prompts/role.md", "system", "one\n{{ room.nmae }}")
    trajectory, requests = await run(replace(HARNESS, prompt=[section]))
    assert (trajectory.status, trajectory.error_kind, requests) == ("model_error", "configuration", [])
    assert trajectory.error is not None
    assert "'role', line 2" in trajectory.error


async def test_a_rewrite_changes_the_reply_and_not_the_messages() -> None:
    on_fail = OnFail("rewrite", substitute=(Substitution("最低价", "好价"),))
    harness = with_hook("reply", {"kind": "forbid", "patterns": ["最低价"]}, on_fail)
    trajectory, _ = await run(harness, load("item-qa"), say("全网最低价"))
    assert (trajectory.status, trajectory.reply) == ("ok", "全网好价")
    assert trajectory.messages[-1]["content"] == "全网最低价"


async def test_a_block_at_reply_gives_the_fallback() -> None:
    harness = with_hook("reply", {"kind": "forbid", "patterns": ["微信"]}, OnFail("block", reply="换个话题"))
    trajectory, _ = await run(harness, load("item-qa"), say("加微信"))
    assert (trajectory.status, trajectory.reply) == ("blocked", "换个话题")


async def test_a_block_at_input_calls_no_model() -> None:
    harness = with_hook("input", {"kind": "forbid", "patterns": ["多少钱"]}, OnFail("block", reply="稍后"))
    trajectory, requests = await run(harness)
    assert (trajectory.status, trajectory.reply, requests) == ("blocked", "稍后", [])
    assert trajectory.hooks[0].turn == 0


async def test_a_hook_may_refuse_a_tool_call_before_it_is_made() -> None:
    check: dict[str, object] = {"cel": "size(skills_loaded) > 0"}
    harness = with_hook("tool_call", check, OnFail("retry", "先加载技能"), when='tool.name == "get_item"')
    answers = (
        call(("get_item", {"link_id": 3})),
        load("item-qa"),
        call(("get_item", {"link_id": 3})),
        say("89"),
    )
    trajectory, _ = await run(harness, *answers)
    assert [made.error for made in trajectory.tool_calls] == ["refused: 先加载技能", None, None]
    assert [made.get("error", made.get("result")) for made in trajectory.evidence()] == [
        "refused",
        {"price": 89},
    ]


async def test_a_hook_may_keep_a_tool_result_from_the_model() -> None:
    harness = with_hook(
        "tool_result", {"cel": "!has(result.price) || result.price > 100"}, OnFail("retry", "价格不对")
    )
    trajectory, requests = await run(harness, load("item-qa"), call(("get_item", {"link_id": 3})), say("好"))
    assert json.loads(str(tool_contents(requests[2].messages)[-1])) == {"error": "refused: 价格不对"}
    assert trajectory.tool_calls[-1].result == {"price": 89}


async def test_a_json_reply_is_checked_taken_out_of_its_fence_and_asked_for() -> None:
    schema = {"type": "object", "required": ["accuracy"]}
    harness = replace(HARNESS, reply_schema=schema, reply_skill_required=False, hooks=[])
    trajectory, requests = await run(harness, say("好的"), say('```json\n{"accuracy": 1}\n```'))
    assert (trajectory.status, trajectory.reply) == ("ok", '{"accuracy": 1}')
    assert requests[0].response_schema == {"name": "tiny_reply", "schema": schema}
    jsonschema.validate(json.loads(trajectory.reply or ""), schema)


async def test_skills_that_no_section_shows_stand_in_the_tool() -> None:
    harness = replace(HARNESS, prompt=[PromptSection("role", "p", "user", "Hi")])
    _, requests = await run(harness, load("item-qa"), say("89"))
    assert "item-qa (reply): Questions about an item." in requests[0].tools[0]["function"]["description"]


@pytest.mark.parametrize("key", ["", "same"])
async def test_calls_get_an_id_of_their_own(key: str) -> None:
    answer = load("item-qa", "item-qa", "item-qa")
    alike = replace(answer, tool_calls=[replace(made, id=key) for made in answer.tool_calls])
    trajectory, _ = await run(HARNESS, alike, say("89"))
    ids = [made["id"] for made in trajectory.messages[2]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in trajectory.messages[3:6]]
    assert len(set(filter(None, ids))) == 3


@pytest.mark.parametrize(
    ("answer", "thought"),
    [
        (replace(say("89"), reasoning="hm"), "hm"),
        (say("<think>hm</think>\n\n89"), "hm"),
        (say("hm,\nwell\n</think>\n89"), "hm,\nwell"),
        (replace(say("<think>b</think>89"), reasoning="a"), "a\n\nb"),
        (say("89"), ""),
    ],
)
async def test_thinking_aloud_is_kept_apart(answer: ChatReply, thought: str) -> None:
    trajectory, _ = await run(HARNESS, load("item-qa"), answer)
    assert (trajectory.reply, trajectory.calls[-1].reasoning) == ("89", thought)
    assert trajectory.messages[-1] == {"role": "assistant", "content": "89"}


async def test_thinking_that_never_ends_is_no_reply() -> None:
    trajectory, _ = await run(HARNESS, load("item-qa"), say("<think>hm, 88?"), say("89"))
    assert (trajectory.reply, trajectory.retries) == ("89", 1)


async def test_a_call_says_who_answered_and_how_it_ended() -> None:
    last = replace(say("89"), finish_reason="length", fingerprint="fp_1")
    trajectory, _ = await run(HARNESS, load("item-qa"), last)
    made = trajectory.calls[-1]
    assert (made.finish_reason, made.fingerprint, made.cached_tokens) == ("length", "fp_1", 2)
    assert trajectory.finish_reason == "length"


def test_limits_have_the_defaults_of_the_format() -> None:
    assert Limits() == Limits(turns=8, tool_calls=12, hook_retries=2, seconds=20)


LOOP = "{% for a in range(999) %}" * 4 + "{% endfor %}" * 4


async def test_a_template_that_loops_ends_the_run_and_is_named() -> None:
    looping = replace(HARNESS, prompt=[replace(HARNESS.prompt[0], template=LOOP)])
    trajectory, requests = await run(looping, say("x"))
    assert (trajectory.status, requests) == ("time_limit", [])
    assert "prompt section 'role' took longer than 2 seconds" in str(trajectory.error)


async def test_a_template_that_grows_ends_the_run() -> None:
    growing = "{% set a = 'x' * 400000 %}" + "{% set a = a ~ a %}" * 17 + "{{ a|length }}"
    trajectory, _ = await run(
        replace(HARNESS, prompt=[replace(HARNESS.prompt[0], template=growing)]), say("x")
    )
    assert (trajectory.status, trajectory.error) == (
        "time_limit",
        "the prompt took more than 512 MB of memory",
    )


async def test_a_hook_that_loops_ends_the_run_and_is_named() -> None:
    numbers = str([1] * 600).replace(" ", "")
    slow = Hook(
        "slow", "reply", None, {"cel": f"{numbers}.all(a, {numbers}.all(b, a + b > -1))"}, OnFail("warn")
    )
    trajectory, _ = await run(replace(HARNESS, hooks=[slow], reply_skill_required=False), say("x"))
    assert trajectory.status == "time_limit"
    assert "hook 'slow' took longer" in str(trajectory.error)


def find_no_price(reply: str) -> str | None:
    return None if "89" in reply else "no price"


async def checked(harness: Harness, *answers: Answer) -> tuple[Trajectory, list[ChatRequest]]:
    model = ScriptedModel(list(answers))
    variables = build_variables(REQUEST, {})
    return await run_agent(harness, variables, model, model_name="m", check=find_no_price), model.requests


PLAIN = replace(HARNESS, reply_skill_required=False, hooks=[])


async def test_reply_that_the_caller_cannot_use_is_asked_for_again() -> None:
    trajectory, requests = await checked(PLAIN, say("cheap"), say("89"))
    assert (trajectory.status, trajectory.reply, trajectory.retries) == ("ok", "89", 1)
    assert "no price" in requests[1].messages[-1]["content"]
    assert [(hook.hook, hook.outcome) for hook in trajectory.hooks if hook.outcome != "pass"] == [
        ("reply_check", "retry")
    ]


@pytest.mark.parametrize("limits", [{"hook_retries": 0}, {"turns": 1}, {"hook_retries": 0, "turns": 1}])
async def test_the_caller_has_one_retry_whatever_the_limits(limits: dict[str, int]) -> None:
    harness = replace(PLAIN, limits=replace(PLAIN.limits, **limits))
    trajectory, _ = await checked(harness, say("cheap"), say("89"))
    assert (trajectory.status, trajectory.reply) == ("ok", "89")


async def test_reply_that_stays_of_no_use_ends_as_a_hook_limit() -> None:
    harness = replace(PLAIN, limits=replace(PLAIN.limits, hook_retries=0))
    trajectory, requests = await checked(harness, say("cheap"), say("cheaper"), say("89"))
    assert (trajectory.status, trajectory.reply, len(requests)) == ("hook_limit", "cheaper", 2)
    assert "no price" in (trajectory.error or "")


async def test_every_call_says_which_trial_it_is() -> None:
    model = ScriptedModel([load("item-qa"), say("89")])
    await run_agent(HARNESS, build_variables(REQUEST, {}), model, model_name="m", repeat=3)
    assert [request.repeat for request in model.requests] == [3, 3]
