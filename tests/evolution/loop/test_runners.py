"""Agents that are not ours, chosen for a harness and measured in whole evaluations."""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pytest_django import Settings

from evolution.actions.harnesses import create_harness
from evolution.actions.runners import set_runner
from evolution.actors import NotAllowed
from evolution.adapters.rehearsal import RehearsalModel
from evolution.errors import LoopError
from evolution.loop.authors import author_of
from evolution.loop.batches import work_batch
from evolution.loop.evaluation import build_scorer, create_evaluation
from evolution.loop.regressions import run_facts
from evolution.loop.repositories import check_has_agent, open_repository
from evolution.loop.runners import FIXTURES_ONLY, build_runner, check_runner, detail_runner
from evolution.loop.verdict import compare_facts
from evolution.models import Evaluation, Event, Harness
from evolution.ports import NamedModel
from evolution.states import EvaluationState
from harness_repo.runtime.access import NO_ACCESS, Secret, ToolAccess
from harness_repo.runtime.http_runner import HttpRunner
from harness_repo.runtime.native import NativeRunner
from tests.evolution.measured import (
    AGENT,
    ANNA,
    DEV,
    JUDGE,
    FakeModel,
    judge_reply,
    knows,
    make_case,
    make_evaluation,
    make_harness,
    make_version,
    run,
)

# Knows what the version's role file says, as the agent of the other tests does.
SCRIPT = b"""
import json, sys
case = json.load(sys.stdin)
question = case["request"]["danmaku"][0]["text"]
known = open("prompts/role.md").read().split()
if question == "q4":
    sys.exit("no such question")
assert "expected" not in case and len(case["commit"]) == 40
print(json.dumps({"reply": "right" if question in known else "wrong"}))
"""
COMMAND = {"kind": "command", "command": [sys.executable, "-S", "agent.py"], "seconds": 30, "memory_mb": 512}


def make_foreign() -> Harness:
    judge = create_harness(ANNA, "shop-judge", "judge", JUDGE)
    files = {**AGENT, "prompts/role.md": b"knows: q1 q2\n", "agent.py": SCRIPT}
    harness = create_harness(ANNA, "shop", "agent", files, judge=judge)
    set_runner(ANNA, harness, COMMAND)
    return harness


@pytest.mark.django_db
def test_command_is_measured_case_by_case_and_its_failures_are_no_scores() -> None:
    evaluation = make_evaluation(make_foreign())
    policy = run(evaluation)
    assert policy.asked == []
    assert evaluation.state == EvaluationState.PARTIAL
    rows = {result.case.key: result for result in evaluation.results.select_related("case")}
    assert [rows[key].accuracy for key in ("q1", "q2", "q3", "q4")] == [1, 1, 0, None]
    assert (rows["q4"].error_kind, rows["q4"].error) == ("runner_error", "exit code 1: no such question")
    assert rows["q4"].trajectory["runner"]["exit_code"] == 1
    assert evaluation.model.endswith("-S agent.py")


TALKER = b"""
import json, sys
request = json.load(sys.stdin)["request"]
assert set(request) == {"danmaku", "history"}
reply = f"answer {len(request['history']) // 2 + 1} to {request['danmaku'][-1]['text']}"
print(json.dumps({"reply": reply}))
"""


@pytest.mark.django_db
def test_command_converses_with_the_simulated_user() -> None:
    judge = create_harness(ANNA, "shop-judge", "judge", JUDGE)
    harness = create_harness(ANNA, "shop", "agent", {**AGENT, "agent.py": TALKER}, judge=judge)
    set_runner(ANNA, harness, COMMAND)
    talk = {"persona": "brief", "goal": "learn the price; learn the stock"}
    case = replace(make_case("talk"), request={"user": talk})
    version = make_version(harness, [case])
    names = {"model": "m", "judge_model": "j", "user_model": "rehearsal-user"}
    evaluation = create_evaluation(DEV, harness, "main", version, **names)  # type: ignore[arg-type]
    judged = FakeModel(judge_reply)
    user = NamedModel(RehearsalModel(), "rehearsal-user")
    work_batch([evaluation], lambda _: build_scorer(evaluation, None, NamedModel(judged, "j"), user))
    result = evaluation.results.get()
    assert (result.error, result.trajectory["status"]) == ("", "ok")
    assert result.reply.splitlines() == [
        "answer 1 to Could you tell me the price?",
        "answer 2 to Could you tell me the stock?",
    ]
    assert json.loads(judged.asked[0])["reply"] == result.reply


@pytest.mark.django_db
def test_evaluations_of_different_agents_are_different_evaluations() -> None:
    harness = make_harness()
    native = make_evaluation(harness)
    set_runner(ANNA, harness, {"kind": "http", "url": "http://127.0.0.1:1/"})
    foreign = make_evaluation(harness)
    assert (native.runner, native.model) == ({}, "m")
    assert foreign != native
    assert foreign.model == "http://127.0.0.1:1/"
    set_runner(ANNA, harness, {})
    assert make_evaluation(harness) == native


@pytest.mark.django_db
def test_running_evaluation_keeps_the_agent_it_was_started_with() -> None:
    harness = make_foreign()
    evaluation = make_evaluation(harness)
    set_runner(ANNA, harness, {})
    assert run(evaluation).asked == []


@pytest.mark.django_db
def test_operator_sets_the_agent_and_it_is_recorded_once() -> None:
    harness = make_harness()
    with pytest.raises(NotAllowed):
        set_runner(DEV, harness, COMMAND)
    chosen = set_runner(ANNA, harness, COMMAND)
    set_runner(ANNA, harness, COMMAND)
    assert harness.runner == chosen == {**COMMAND, "environment": []}
    assert Event.objects.get(verb="harness.runner_set").data == {"runner": chosen}
    assert harness.judge is not None
    with pytest.raises(LoopError, match="judge"):
        set_runner(ANNA, harness.judge, COMMAND)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"kind": "docker"}, "kind"),
        ({"kind": "command"}, "command: Field required"),
        ({"kind": "command", "command": []}, "command"),
        ({"kind": "command", "command": ["a", ""]}, "command"),
        ({"kind": "command", "command": ["a\0"]}, "NUL"),
        ({"kind": "command", "command": ["a"], "seconds": 0}, "seconds"),
        ({"kind": "command", "command": ["a"], "seconds": 1e9}, "seconds"),
        ({"kind": "command", "command": ["a"], "memory_mb": 1}, "memory_mb"),
        ({"kind": "command", "command": ["a"], "environment": ["A=b"]}, "A=b"),
        ({"kind": "command", "command": ["a"], "shell": True}, "shell"),
        ({"kind": "http", "url": "ftp://host/"}, "ftp"),
        ({"kind": "http", "url": "http://user:password@host/"}, "password"),
        ({"kind": "http", "url": "https://host/", "headers": {"A b": "x"}}, "A b"),
        ({"kind": "http", "url": "https://host/", "headers": {"A": "x\r\nB: y"}}, "A can't be sent"),
    ],
)
def test_choice_that_cannot_work_is_refused(stored: dict[str, Any], message: str) -> None:
    with pytest.raises(LoopError, match=message):
        check_runner(stored)


def test_detail_of_a_choice_has_all_that_can_make_a_difference() -> None:
    assert detail_runner({}) == "native"
    detail = detail_runner(check_runner({"kind": "command", "command": ["run me", "-v"], "seconds": 5}))
    assert detail == "'run me' -v (seconds: 5.0, memory_mb: 2048)"


@pytest.fixture
def address() -> Iterator[tuple[str, list[str]]]:
    """An agent behind HTTP that is always right, and the tokens it was sent."""
    tokens: list[str] = []

    class Agent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            tokens.append(self.headers.get("Authorization", ""))
            body = json.dumps({"reply": "right"}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/answer", tokens
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.django_db
def test_endpoint_is_measured_and_given_its_secret(address: tuple[str, list[str]]) -> None:
    url, tokens = address
    harness = make_harness()
    set_runner(
        ANNA, harness, {"kind": "http", "url": url, "headers": {"Authorization": "Bearer ${secret:AGENT}"}}
    )
    evaluation = make_evaluation(harness)
    access = ToolAccess(secrets={"AGENT": Secret("s3cret", frozenset({url.rsplit("/", 1)[0]}))})
    judge = NamedModel(FakeModel(judge_reply), "j")
    work_batch([evaluation], lambda _: build_scorer(evaluation, None, judge, access=access))
    assert set(evaluation.results.values_list("accuracy", "error")) == {(1, "")}
    assert tokens == ["Bearer s3cret"] * 4
    assert "s3cret" not in json.dumps([harness.runner, evaluation.runner])
    assert not any("s3cret" in json.dumps(result.trajectory) for result in evaluation.results.all())


@pytest.mark.django_db
def test_secret_that_is_not_granted_is_an_error_before_anything_is_sent() -> None:
    harness = make_harness()
    set_runner(ANNA, harness, {"kind": "http", "url": "https://host/", "headers": {"A": "${secret:X}"}})
    evaluation = make_evaluation(harness)
    with pytest.raises(LoopError, match="no secret X"):
        build_runner(evaluation, None, NO_ACCESS)


@pytest.mark.django_db
def test_tools_reach_the_world_only_when_the_installation_says_so(settings: Settings) -> None:
    harness = make_harness()
    access = ToolAccess(frozenset({"shop.example"}))

    def reach(evaluation: Evaluation) -> ToolAccess:
        runner = build_runner(evaluation, NamedModel(FakeModel(knows), "m"), access)
        assert isinstance(runner, NativeRunner)
        return runner.access

    settings.EVALUATION_LIVE_TOOLS = False
    replayed = make_evaluation(harness)
    settings.EVALUATION_LIVE_TOOLS = True
    live = make_evaluation(harness)
    # Two evaluations that nobody may compare, and each stays what it was started as.
    assert (replayed.live_tools, live.live_tools, replayed.pk == live.pk) == (False, True, False)
    assert (reach(replayed), reach(live)) == (FIXTURES_ONLY, access)
    reasons = compare_facts(run_facts(replayed), run_facts(live))
    differs = {"what": "live_tools", "base": "fixtures", "candidate": "live"}
    assert differs in [reason.values for reason in reasons]
    settings.EVALUATION_LIVE_TOOLS = False
    assert make_evaluation(harness).pk == replayed.pk
    with pytest.raises(LoopError, match="EVALUATION_LIVE_TOOLS is off now"):
        reach(live)


@pytest.mark.django_db
def test_foreign_repository_without_a_runner_is_told_what_is_missing() -> None:
    """Our runtime can't run what has no harness.yaml."""
    harness = make_harness()
    repository = open_repository(harness)
    base = repository.resolve("main")
    files: dict[str, bytes | None] = {
        path: None for path in repository.files(base) if not path.startswith("skills/")
    }
    files |= {"skills/a/SKILL.md": b"---\nname: a\ndescription: d\n---\nbody\n"}
    bare = repository.commit("bare", files, parent=base, author=author_of(DEV), message="foreign")
    with pytest.raises(LoopError, match=r"shop has no harness.yaml at .*: set a runner first"):
        make_evaluation(harness, bare)
    with pytest.raises(LoopError, match="set a runner first"):
        check_has_agent(harness, bare)
    set_runner(ANNA, harness, COMMAND)
    assert make_evaluation(harness, bare).runner == check_runner(COMMAND)


@pytest.mark.django_db
def test_connections_of_an_endpoint_are_kept_for_a_shard() -> None:
    harness = make_harness()
    set_runner(ANNA, harness, {"kind": "http", "url": "https://host/"})
    scorer = build_scorer(make_evaluation(harness), None, NamedModel(FakeModel(judge_reply), "j"))
    assert [type(one) for one in scorer.connections()] == [HttpRunner]
