import asyncio
import copy
import json
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings

from evolution.adapters.rehearsal import RehearsalModel
from evolution.loop.judging import LONGEST_FOR_JUDGE, MOST_FOR_JUDGE, cut_json, read_scores
from evolution.loop.scoring import (
    RETRYABLE_KINDS,
    CaseOutcome,
    Scorer,
    case_seed,
    score_case,
)
from evolution.models import DatasetCase
from evolution.ports import NamedModel
from harness_repo.format.harness import read_harness
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, Usage
from harness_repo.runtime.foreign import read_answer
from harness_repo.runtime.native import NativeRunner
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import ToolCallRecord, Trajectory
from tests.evolution.measured import AGENT, JUDGE, FakeModel, judge_reply, knows, outage

CASE = DatasetCase(
    key="q1",
    category="any",
    language="en",
    split="dev",
    request={"danmaku": [{"user": "u", "text": "q1"}]},
    context={},
    expected={"facts": ["x"]},
)
BLOCK = b"""name: block
event: reply
check: {kind: forbid, patterns: ["wrong"]}
on_fail: {action: block, reply: right}
"""


class Waiting:
    """Never answers in time."""

    async def complete(self, _request: ChatRequest) -> ChatReply:
        await asyncio.sleep(60)
        raise AssertionError


def score(agent: object, judge: object = None, **files: bytes) -> CaseOutcome:
    named = {name.replace("__", "/").replace("_yaml", ".yaml"): data for name, data in files.items()}
    scorer = Scorer(
        NativeRunner(read_harness({**AGENT, **named}), agent, "m"),  # type: ignore[arg-type]
        read_harness(JUDGE),
        NamedModel(judge or FakeModel(judge_reply), "j"),  # type: ignore[arg-type]
    )
    return asyncio.run(score_case(CASE, scorer))


def test_judge_sees_case_reply_evidence_and_expectations() -> None:
    judge = FakeModel(judge_reply)
    outcome = score(FakeModel(lambda _s, _u: "right"), judge)
    assert (outcome.accuracy, outcome.effectiveness, outcome.reply) == (1, 1, "right")
    assert json.loads(judge.asked[0]) == {"reply": "right", "expected": {"facts": ["x"]}}
    assert (outcome.prompt_tokens, outcome.completion_tokens) == (10, 5)


def test_reply_that_a_hook_put_in_place_is_judged() -> None:
    outcome = score(FakeModel(knows), hooks__block_yaml=BLOCK)
    assert (outcome.trajectory["status"], outcome.reply, outcome.accuracy) == ("blocked", "right", 1)


def test_model_that_never_answered_in_time_is_an_error() -> None:
    limits = AGENT["harness.yaml"] + b"limits: {seconds: 0.05}\n"
    outcome = score(Waiting(), harness_yaml=limits)
    assert (outcome.error_kind, outcome.accuracy) == ("timeout", None)


def test_broken_template_is_an_error_of_the_policy() -> None:
    outcome = score(FakeModel(knows), **{"prompts/role.md": b"{{ nothing.like.this }}"})
    assert outcome.error_kind == "policy_error"
    assert "role" in outcome.error


def test_judge_that_fails_is_an_error_of_the_judge() -> None:
    outcome = score(FakeModel(knows), FakeModel(outage()))
    assert (outcome.error_kind, outcome.error) == ("judge_error", "the endpoint is down")


@pytest.mark.parametrize(
    "reply",
    [
        "fine",
        "[]",
        '{"accuracy": 1}',
        '{"accuracy": 0.5, "effectiveness": 1}',
        '{"accuracy": 1, "effectiveness": 2}',
        '{"accuracy": 1, "effectiveness": 1, "findings": ["x"]}',
        '{"accuracy": 1, "effectiveness": 1, "reasons": {"accuracy": NaN}}',
        '{"accuracy": 1, "effectiveness": 1, "findings": [{"n": 1e999}]}',
        '{"accuracy": 1, "effectiveness": 1, "reasons": {"a": ' + "[" * 600 + "]" * 600 + "}}",
        "[" * 100_000,
        "```json\n{}\n```",
        '{"accuracy": 0, "effectiveness": 1, "accuracy": 1}',
        '{"accuracy": 1, "effectiveness": 1, "reasons": {"a": "x", "\\u0061": "y"}}',
    ],
)
def test_reply_that_breaks_the_schema_is_no_score(reply: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_scores(reply, read_harness(JUDGE))


def test_judges_own_schema_is_in_force_too() -> None:
    schema = b"reply_schema: {type: object, required: [reasons]}\n"
    judge = read_harness({**JUDGE, "harness.yaml": JUDGE["harness.yaml"] + schema})
    with pytest.raises(ValueError, match="reasons"):
        read_scores('{"accuracy": 1, "effectiveness": 1}', judge)


def test_what_a_model_counts_is_stored_as_far_as_it_can_be() -> None:
    class Miscounting:
        async def complete(self, _request: ChatRequest) -> ChatReply:
            return ChatReply("right", usage=Usage(-1, 3 * 10**9), latency_ms=float("nan"))

    outcome = score(Miscounting())
    assert (outcome.prompt_tokens, outcome.completion_tokens, outcome.latency_ms) == (0, 2**31 - 1, 0)
    assert outcome.accuracy == 1


def test_template_that_never_ends_is_an_error_of_the_policy() -> None:
    loops = b"{% for a in range(999) %}" * 4 + b"{% endfor %}" * 4
    outcome = score(FakeModel(knows), **{"prompts/role.md": loops})
    assert (outcome.error_kind, outcome.accuracy) == ("policy_error", None)
    assert "took longer" in outcome.error


def test_judge_that_breaks_in_an_unforeseen_way_keeps_the_agents_run() -> None:
    def fail(_system: str, _user: str) -> str:
        raise RuntimeError("unforeseen")

    outcome = score(FakeModel(knows), FakeModel(fail))
    assert (outcome.error_kind, outcome.error) == ("judge_error", "RuntimeError: unforeseen")
    assert outcome.reply == "wrong"


TALK = {"user": {"persona": "p", "goal": "learn q1; learn q2"}}


class Scripted:
    """An agent that is not ours: gives back these trajectories, and keeps the cases."""

    def __init__(self, *answers: Trajectory) -> None:
        self.answers = list(answers)
        self.cases: list[RunCase] = []

    async def run(self, case: RunCase) -> Trajectory:
        self.cases.append(case)
        return self.answers.pop(0)


def score_with(runner: Scripted, case: DatasetCase = CASE, judge: Any = None, **fields: Any) -> CaseOutcome:
    scorer = Scorer(
        runner, read_harness(TALK_JUDGE), NamedModel(judge or FakeModel(judge_reply), "j"), **fields
    )
    return asyncio.run(score_case(case, scorer, 2))


SEEN = b"{{ {'reply': reply, 'conversation': conversation, 'evidence': evidence} | tojson }}\n"
TALK_JUDGE = {**JUDGE, "prompts/case.md": SEEN}
USER = NamedModel(RehearsalModel(), "rehearsal-user")


def test_agent_is_given_the_case_and_never_what_is_right() -> None:
    runner = Scripted(Trajectory("ok", "right"))
    case = copy.copy(CASE)
    case.faults = [{"kind": "timeout", "tool": "a"}]
    score_with(runner, case, commit="c" * 40, faults=({"kind": "malformed"},))
    seen = runner.cases[0]
    assert (seen.key, seen.commit, seen.repeat) == ("q1", "c" * 40, 2)
    assert list(seen.faults) == [{"kind": "timeout", "tool": "a"}, {"kind": "malformed"}]
    assert "expected" not in seen.to_dict()


def test_seed_follows_from_case_and_repeat_alone() -> None:
    assert case_seed("q1", 0) == case_seed("q1", 0)
    seeds = {case_seed(key, repeat) for key in ("q1", "q2") for repeat in range(50)}
    assert len(seeds) == 100
    assert max(seeds) < 2**31


def test_judge_sees_the_conversation_and_all_replies() -> None:
    runner = Scripted(Trajectory("ok", "one"), Trajectory("ok", "two"))
    case = copy.copy(CASE)
    case.request = TALK
    judge = FakeModel(judge_reply)
    outcome = score_with(runner, case, judge, user=USER)
    seen = json.loads(judge.asked[0])
    assert seen["reply"] == outcome.reply == "one\ntwo"
    assert [(turn["user"], turn["reply"]) for turn in seen["conversation"]] == [
        ("Could you tell me q1?", "one"),
        ("Could you tell me q2?", "two"),
        ("Thanks!", None),
    ]
    assert [case.request["danmaku"][0]["text"] for case in runner.cases] == [
        "Could you tell me q1?",
        "Could you tell me q2?",
    ]
    assert all("user" not in case.request for case in runner.cases)


def test_conversation_whose_user_fails_is_an_error_of_the_user() -> None:
    case = copy.copy(CASE)
    case.request = TALK
    failing = NamedModel(FakeModel(outage()), "u")
    outcome = score_with(Scripted(Trajectory("ok", "one")), case, user=failing)
    assert (outcome.error_kind, outcome.accuracy) == ("user_error", None)
    assert score_with(Scripted(), case).error_kind == "user_error"


@pytest.mark.parametrize(
    ("answered", "kind"),
    [
        (Trajectory("runner_error", None, error="exit code 1", runner={"kind": "command"}), "runner_error"),
        (Trajectory("runner_error", "half", error="exit code 1", runner={"kind": "command"}), "runner_error"),
        (Trajectory("time_limit", None, error="not done", runner={"kind": "http"}), "timeout"),
        (Trajectory("time_limit", None, error="not done"), "timeout"),
        (Trajectory("model_error", None, error="down"), "policy_error"),
        (Trajectory("model_error", None, error="late", error_kind="timeout"), "timeout"),
        (Trajectory("model_error", None, error="spent", error_kind="budget"), "budget"),
        (Trajectory("user_error", None, error="spent", error_kind="budget"), "budget"),
        (Trajectory("runner_error", None, error="no list", error_kind="case"), "case_error"),
        (Trajectory("time_limit", "so far", error="not done", runner={"kind": "http"}), ""),
        (Trajectory("turn_limit", "so far", error="turns"), ""),
        (Trajectory("token_limit", None, error="tokens"), ""),
    ],
)
def test_run_that_left_nothing_to_judge_is_an_error_of_its_kind(answered: Trajectory, kind: str) -> None:
    outcome = score_with(Scripted(answered))
    assert (outcome.error_kind, outcome.accuracy is None) == (kind, bool(kind))
    assert outcome.error == (answered.error if kind else "")
    # What a budget cut off is not counted as a failure of the model or the user.
    assert outcome.run_status == ("budget" if kind == "budget" else answered.status)


def test_more_than_a_judge_can_read_is_cut_and_scored() -> None:
    """Else an agent could have its failures counted as the judge's."""
    calls = [ToolCallRecord(1, str(n), "find", {}, "y" * 50_000, None, 1.0) for n in range(30)]
    judge = FakeModel(judge_reply)
    outcome = score_with(Scripted(Trajectory("ok", "x" * 3_000_000, tool_calls=calls)), judge=judge)
    assert (outcome.error_kind, outcome.accuracy, len(outcome.reply)) == ("", 0, 3_000_000)
    assert json.loads(judge.asked[0])["reply"] == "x" * LONGEST_FOR_JUDGE + "… [cut: 3000000 characters]"
    shown = cut_json(Trajectory("ok", "x", tool_calls=calls).evidence())
    assert len(json.dumps(shown)) < MOST_FOR_JUDGE + 10_000
    assert (len(shown), shown[-1]) == (30, {"tool": "find", "cut": "20072 characters"})


def test_agent_that_says_that_it_failed_has_a_score() -> None:
    for status in ("model_error", "runner_error", "user_error"):
        claimed = read_answer(
            json.dumps({"status": status, "error": "hard"}).encode(), {"kind": "command"}, 1.0
        )
        outcome = score_with(Scripted(claimed))
        assert (claimed.status, outcome.error_kind, outcome.accuracy) == ("agent_error", "", 0)


class Asked:
    """Answers with these texts in turn; counts like a server, and keeps the requests."""

    def __init__(self, *texts: str | ChatError) -> None:
        self.texts = list(texts)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        text = self.texts.pop(0)
        if isinstance(text, ChatError):
            raise text
        key = f"{len(self.requests):032x}"
        return ChatReply(text, usage=Usage(100, 10, 40), model="server-1", latency_ms=7, cache_key=key)


GOOD = '{"accuracy": 1, "effectiveness": 0.5}'
BAD = '{"accuracy": 2, "effectiveness": 0.5}'


class Forgetting:
    """As much of a ledger as scoring asks for."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    def forget(self, keys: list[str]) -> None:
        self.forgotten += keys


def judged_by(judge: Asked, ledger: Forgetting | None = None) -> CaseOutcome:
    scorer = Scorer(
        NativeRunner(read_harness(AGENT), Asked("right"), "policy-1"),
        read_harness(JUDGE),
        NamedModel(judge, "judge-1"),
        ledger=ledger,  # type: ignore[arg-type]  # the part of it that is asked
    )
    return asyncio.run(score_case(CASE, scorer, 2))


@pytest.mark.parametrize("bad", ["fine", BAD, '{"accuracy": 1}', ""])
def test_judgement_of_no_use_is_asked_for_once_more(bad: str) -> None:
    judge, ledger = Asked(bad, GOOD), Forgetting()
    outcome = judged_by(judge, ledger)
    assert (outcome.error_kind, outcome.accuracy, outcome.effectiveness) == ("", 1, 0.5)
    assert [request.messages[-1]["role"] for request in judge.requests] == ["user", "user"]
    assert ledger.forgotten == []


def test_judgement_that_stays_of_no_use_is_an_error_and_is_not_kept() -> None:
    judge, ledger = Asked(BAD, BAD, BAD, BAD), Forgetting()
    outcome = judged_by(judge, ledger)
    assert (outcome.error_kind, outcome.accuracy, outcome.effectiveness) == ("judge_output", None, None)
    assert "$.accuracy" in outcome.error
    assert ledger.forgotten == [f"{n:032x}" for n in range(1, len(judge.requests) + 1)]


def test_judgement_against_the_judges_own_schema_is_an_error() -> None:
    strict = b"limits: {hook_retries: 0}\nreply_schema: {type: object, required: [reasons]}\n"
    judge = Asked(GOOD, GOOD, GOOD)
    scorer = Scorer(
        NativeRunner(read_harness(AGENT), Asked("right"), "m"),
        read_harness({**JUDGE, "harness.yaml": JUDGE["harness.yaml"] + strict}),
        NamedModel(judge, "j"),
    )
    outcome = asyncio.run(score_case(CASE, scorer))
    assert (outcome.error_kind, outcome.accuracy, len(judge.requests)) == ("judge_output", None, 2)


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("timeout", "judge_timeout"),
        ("budget", "budget"),
        ("server", "judge_error"),
        ("refused", "judge_error"),
    ],
)
def test_failure_of_the_judges_model_says_which(kind: Any, stored: str) -> None:
    outcome = judged_by(Asked(ChatError("failed", kind)))
    assert (outcome.error_kind, outcome.accuracy, outcome.reply) == (stored, None, "right")
    assert (stored in RETRYABLE_KINDS) == (stored != "budget")


def test_judge_that_runs_out_of_time_is_an_error_of_its_own_kind() -> None:
    hurried = {**JUDGE, "harness.yaml": JUDGE["harness.yaml"] + b"limits: {seconds: 0.05}\n"}
    scorer = Scorer(
        NativeRunner(read_harness(AGENT), Asked("right"), "m"),
        read_harness(hurried),
        NamedModel(Waiting(), "j"),
    )
    assert asyncio.run(score_case(CASE, scorer)).error_kind == "judge_timeout"


def test_calls_tokens_and_times_are_counted_by_role(settings: Settings) -> None:
    settings.MODEL_PRICES = {"policy-1": {"input": 1, "output": 10}, "judge-1": {"input": 2, "output": 20}}
    outcome = judged_by(Asked("fine", GOOD))
    assert (outcome.prompt_tokens, outcome.completion_tokens, outcome.cached_tokens) == (100, 10, 40)
    assert (outcome.judge_prompt_tokens, outcome.judge_completion_tokens) == (200, 20)
    assert (outcome.judge_cached_tokens, outcome.calls, outcome.calls_cached) == (80, 3, 0)
    assert (outcome.call_ms, outcome.judge_call_ms) == ([7], [7, 7])
    # 100 + 10 * 10 of the policy, 200 * 2 + 20 * 20 of the judge, per million.
    assert outcome.cost == Decimal("0.001")


def test_cost_with_a_price_that_nobody_set_is_unknown(settings: Settings) -> None:
    settings.MODEL_PRICES = {"policy-1": {"input": 1, "output": 10}}
    assert judged_by(Asked(GOOD)).cost is None


def test_cost_of_an_agent_that_tells_none_of_its_calls_is_unknown() -> None:
    told = Trajectory("ok", "right", runner={"kind": "command"})
    assert score_with(Scripted(told), judge=Asked(GOOD)).cost is None


def test_agent_and_judge_are_asked_for_the_same_trial() -> None:
    agent, judge = Asked("right"), Asked(GOOD)
    scorer = Scorer(
        NativeRunner(read_harness(AGENT), agent, "m"), read_harness(JUDGE), NamedModel(judge, "j")
    )
    asyncio.run(score_case(CASE, scorer, 3))
    assert [request.repeat for request in (*agent.requests, *judge.requests)] == [3, 3]


def test_lines_of_a_user_that_were_of_no_use_are_not_kept() -> None:
    case, ledger = copy.copy(CASE), Forgetting()
    case.request = TALK
    user = NamedModel(Asked("no json", "none again"), "u")
    outcome = score_with(Scripted(), case, user=user, ledger=ledger)
    assert outcome.error_kind == "user_error"
    assert ledger.forgotten == [f"{n:032x}" for n in (1, 2)]
