import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace

import pytest

from harness_repo.format.harness import Harness, read_harness
from harness_repo.format.hooks import Hook, OnFail
from harness_repo.runtime.agent import MOST_CALLS_OF_A_TURN, run_agent
from harness_repo.runtime.chat import ChatReply, ChatRequest
from harness_repo.runtime.computing import Allowance, TooMuchComputing
from harness_repo.runtime.context import build_variables
from harness_repo.runtime.faults import Fault
from harness_repo.runtime.reading import read_trajectory
from harness_repo.runtime.sandbox import Prepared, ToolOutcome, ToolSandbox
from harness_repo.runtime.trajectory import Trajectory
from tests.harness_repo.build import FILES
from tests.harness_repo.runtime.scripted import ScriptedModel, call, load, say, tool_contents

HARNESS = replace(read_harness(FILES), reply_skill_required=False)


class World(ToolSandbox):
    """Tools that answer from a world in which link n takes n tenths of a second."""

    def __init__(self, harness: Harness, failure: Exception | None = None) -> None:
        super().__init__(harness.tools, {})
        self.asked: list[int] = []
        self.most_at_once = 0
        self._under_way = 0
        self._failure = failure

    def prepare(self, name: str, arguments_json: str) -> Prepared | ToolOutcome:
        return replace_prepared(super().prepare(name, arguments_json), self, name, arguments_json)

    async def perform(self, prepared: Prepared, computing: Allowance | None = None) -> ToolOutcome:  # noqa: ARG002 - the protocol's
        link = prepared.arguments["link_id"]
        self.asked.append(link)
        if self._failure is not None:
            raise self._failure
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        await asyncio.sleep(link / 10)
        self._under_way -= 1
        return ToolOutcome({"link": link}, None, link * 100.0)


def replace_prepared(
    prepared: Prepared | ToolOutcome, world: World, name: str, arguments_json: str
) -> Prepared | ToolOutcome:
    """What no fixture answers goes out to the world."""
    if isinstance(prepared, ToolOutcome) and prepared.error == "not_found":
        return Prepared(world._tools[name], json.loads(arguments_json))
    return prepared


async def run(
    harness: Harness, *answers: ChatReply, sandbox: ToolSandbox | None = None
) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(list(answers))
    variables = build_variables({"danmaku": ["x"]}, {})
    return await run_agent(harness, variables, model, model_name="m", sandbox=sandbox), model


def links(*numbers: int) -> ChatReply:
    return call(*[("get_item", {"link_id": number}) for number in numbers])


def with_limits(**limits: float) -> Harness:
    return replace(HARNESS, limits=replace(HARNESS.limits, **limits))  # type: ignore[arg-type]  # int and float both


def with_hook(event: str, check: Mapping[str, object], action: str = "block") -> Harness:
    on_fail = OnFail(action, "no", reply="later")  # type: ignore[arg-type]  # tests name actions as text
    return replace(HARNESS, hooks=[Hook("h", event, None, dict(check), on_fail)])  # type: ignore[arg-type]  # and events


async def test_calls_of_a_turn_go_out_together_and_are_told_in_their_order() -> None:
    world = World(HARNESS)
    trajectory, model = await run(HARNESS, links(3, 2, 1), say("ok"), sandbox=world)
    assert world.most_at_once == 3
    assert tool_contents(model.requests[1].messages) == ['{"link": 3}', '{"link": 2}', '{"link": 1}']
    assert [made.result for made in trajectory.tool_calls] == [{"link": 3}, {"link": 2}, {"link": 1}]
    # Two model calls of 100 ms, and the longest of the three.
    assert trajectory.latency_ms == 2 * 100 + 300


async def test_when_time_runs_out_every_call_has_an_answer() -> None:
    harness = with_limits(seconds=0.3)
    trajectory, _ = await run(harness, links(40, 1), sandbox=World(harness))
    assert trajectory.status == "time_limit"
    assert [(made.result, made.error) for made in trajectory.tool_calls] == [
        (None, "cut_off: the run ended before"),
        ({"link": 1}, None),
    ]
    assert len(tool_contents(trajectory.messages)) == 2


async def test_too_much_computing_in_one_call_ends_the_run_and_the_others_are_not_lost() -> None:
    world = World(HARNESS, TooMuchComputing("selecting took too long"))
    trajectory, _ = await run(HARNESS, links(1, 2), sandbox=world)
    assert (trajectory.status, trajectory.error) == ("time_limit", "selecting took too long")
    assert len(tool_contents(trajectory.messages)) == 2


async def test_nothing_goes_out_once_a_hook_blocks_the_run() -> None:
    harness = with_hook("tool_call", {"cel": "tool.arguments.link_id != 2"})
    world = World(harness)
    trajectory, _ = await run(harness, links(1, 2, 3), sandbox=world)
    assert (trajectory.status, trajectory.reply, world.asked) == ("blocked", "later", [])
    assert [made.error for made in trajectory.tool_calls] == [
        "not_made: the run is over",
        "refused: no",
        "not_made: the run is over",
    ]


async def test_a_call_that_a_hook_refuses_does_not_keep_the_others() -> None:
    harness = with_hook("tool_call", {"cel": "tool.arguments.link_id != 2"}, "retry")
    world = World(harness)
    trajectory, _ = await run(harness, links(1, 2), say("ok"), sandbox=world)
    assert (trajectory.status, world.asked) == ("ok", [1])
    assert [made.error for made in trajectory.tool_calls] == [None, "refused: no"]


async def test_nothing_goes_out_beyond_the_limit_of_calls() -> None:
    world = World(HARNESS)
    trajectory, _ = await run(HARNESS, links(1, 1, 1, 1), sandbox=world)
    assert (trajectory.status, world.asked) == ("tool_call_limit", [])
    assert trajectory.tool_calls[-1].error == "limit: at most 3 calls"


async def test_hooks_see_the_calls_before_in_the_same_turn() -> None:
    harness = with_hook(
        "tool_call", {"cel": "tool_calls.filter(c, c.name == 'get_item').size() < 2"}, "retry"
    )
    trajectory, _ = await run(harness, links(1, 1, 1), say("ok"), sandbox=World(harness))
    assert [made.error for made in trajectory.tool_calls] == [None, None, "refused: no"]


async def test_a_skill_loaded_in_a_turn_counts_for_the_call_after_it() -> None:
    harness = with_hook("tool_call", {"cel": "tool.name == 'load_skill' || size(skills_loaded) > 0"}, "retry")
    both = call(("load_skill", {"name": "item-qa"}), ("get_item", {"link_id": 1}))
    trajectory, _ = await run(harness, both, say("ok"), sandbox=World(harness))
    assert [made.error for made in trajectory.tool_calls] == [None, None]


@pytest.mark.parametrize("kind", ["timeout", "malformed", "permission_denied", "server_error"])
async def test_a_fault_is_told_to_the_model_and_recorded(kind: str) -> None:
    fixtures = {"get_item": [{"arguments": {}, "result": 1}]}
    fault = Fault(kind, "get_item", times=1)  # type: ignore[arg-type]  # tests name kinds as text
    sandbox = ToolSandbox(HARNESS.tools, fixtures, faults=[fault])
    trajectory, model = await run(HARNESS, links(1, 1), say("ok"), sandbox=sandbox)
    first, second = trajectory.tool_calls
    assert (first.fault, first.result, second.fault, second.result) == (kind, None, None, 1)
    assert json.loads(str(tool_contents(model.requests[1].messages)[0])) == {"error": first.error}


async def test_no_call_is_made_once_the_tokens_are_used_up() -> None:
    harness = with_limits(tokens=30)
    world = World(harness)
    # Each answer takes 15 tokens.
    trajectory, model = await run(harness, load("item-qa"), links(1), sandbox=world)
    assert (trajectory.status, trajectory.error) == ("token_limit", "30 tokens, at most 30")
    assert (world.asked, len(model.requests)) == ([], 2)
    assert trajectory.tool_calls[-1].error == "limit: at most 30 tokens"


async def test_a_reply_within_the_last_call_counts() -> None:
    trajectory, _ = await run(with_limits(tokens=30), load("item-qa"), say("ok"))
    assert (trajectory.status, trajectory.reply) == ("ok", "ok")


async def test_a_refused_reply_stays_when_no_tokens_are_left_to_mend_it() -> None:
    trajectory, model = await run(with_limits(tokens=15), say("长" * 30), say("短"))
    assert (trajectory.status, trajectory.reply, len(model.requests)) == ("token_limit", "长" * 30, 1)


@pytest.mark.parametrize(
    "names", [["load_skill"] * 5000, ["load_skill"] * 300, ["get_item", "nothing"] * 2000]
)
async def test_a_flood_of_calls_ends_the_run_and_leaves_a_trajectory_that_can_be_read(
    names: list[str],
) -> None:
    began = time.monotonic()
    flood = call(*[(name, {"name": "item-qa"}) for name in names])
    trajectory, model = await run(with_hook("tool_call", {"cel": "size(tool_calls) >= 0"}), flood, say("89"))
    assert time.monotonic() - began < 5
    assert (trajectory.status, len(model.requests)) == ("tool_call_limit", 1)
    assert trajectory.error == f"{len(names)} tool calls in one turn"
    assert len(trajectory.tool_calls) == MOST_CALLS_OF_A_TURN
    assert {made.error for made in trajectory.tool_calls} == {"limit: at most 256 calls in one turn"}
    assert read_trajectory(trajectory.to_dict()).tool_calls == trajectory.tool_calls


async def test_skills_are_loaded_no_more_often_than_there_is_use_in() -> None:
    bound = 2 * len(HARNESS.skills) + 20
    answers = [load(*["item-qa"] * 10) for _ in range(8)]
    trajectory, _ = await run(with_limits(turns=20), *answers, say("89"))
    assert (trajectory.status, trajectory.error) == ("tool_call_limit", f"more than {bound} load_skill calls")
    assert sum(made.error is None for made in trajectory.tool_calls) == bound
    assert trajectory.tool_calls[-1].error == f"limit: at most {bound} calls"


async def test_without_skills_there_is_no_tool_that_loads_them() -> None:
    harness = replace(HARNESS, skills={}, limits=replace(HARNESS.limits, tool_calls=2))
    trajectory, _ = await run(harness, load("a"), load("a"), load("a"), say("89"))
    assert trajectory.status == "tool_call_limit"
    assert [(made.error or "").split(":")[0] for made in trajectory.tool_calls] == ["unknown_tool"] * 2 + [
        "limit"
    ]


async def test_the_clock_strikes_though_nothing_ever_waits() -> None:
    class Eager:
        async def complete(self, _request: ChatRequest) -> ChatReply:
            time.sleep(0.02)  # noqa: ASYNC251 - a model that never yields
            return load("item-qa")

    harness = with_limits(turns=20, seconds=0.1)
    trajectory = await run_agent(harness, build_variables({"danmaku": ["x"]}, {}), Eager(), model_name="m")
    assert trajectory.status == "time_limit"
    assert len(trajectory.calls) < 20


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("get item!", "get_item_"),
        ("价格", "__"),
        ("", "unnamed"),
        ("x" * 70, "x" * 64),
        ("functions.get", "functions_get"),
    ],
)
async def test_names_that_servers_refuse_are_recorded_and_not_sent_back(name: str, sent: str) -> None:
    trajectory, model = await run(HARNESS, call((name, {})), say("89"))
    assert trajectory.tool_calls[0].name == name
    assert model.requests[1].messages[-2]["tool_calls"][0]["function"]["name"] == sent


async def test_ids_are_of_one_call_in_the_whole_run() -> None:
    def made(*ids: str) -> ChatReply:
        reply = load(*["item-qa"] * len(ids))
        return replace(
            reply, tool_calls=[replace(one, id=key) for one, key in zip(reply.tool_calls, ids, strict=True)]
        )

    answers = [made("", "call_1_1", "call_1_1"), made("call_2_2", "", "a"), made("a", "call_1_1", "")]
    trajectory, _ = await run(with_limits(turns=9), *answers, say("89"))
    ids = [one.id for one in trajectory.tool_calls]
    assert len(set(ids)) == 9
    assert ids[1] == "call_1_1"
    assert ids[3] == "call_2_2"
    asked = [one["id"] for message in trajectory.messages for one in message.get("tool_calls", ())]
    told = [message["tool_call_id"] for message in trajectory.messages if message["role"] == "tool"]
    assert asked == told == ids
