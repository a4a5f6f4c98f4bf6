"""A small agent and judge in real repositories, a dataset, and models that answer as a test wants."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from evolution.actions.harnesses import create_harness
from evolution.actors import Actor, Role
from evolution.demonstration import CaseData
from evolution.loop import steps
from evolution.loop.authors import author_of
from evolution.loop.batches import work_batch
from evolution.loop.datasets import import_dataset
from evolution.loop.evaluation import build_scorer, create_evaluation
from evolution.loop.repositories import open_repository
from evolution.models import DatasetVersion, Evaluation, Harness, Proposal, Step
from evolution.ports import NamedModel
from evolution.states import ReleaseKind
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, Usage

ANNA = Actor("anna", Role.OPERATOR)
DEV = Actor("dev", Role.DEVELOPER)
VIEWER = Actor("visitor", Role.VIEWER)

AGENT = {
    "harness.yaml": b"""format: 1
name: shop
kind: agent
prompt:
  - {name: role, file: prompts/role.md}
  - {name: request, file: prompts/request.md, role: user}
reply_skill_required: false
""",
    "prompts/role.md": b"knows: nothing\n",
    "prompts/request.md": b"{{ danmaku[0].text }}\n",
}
JUDGE = {
    "harness.yaml": b"""format: 1
name: shop-judge
kind: judge
prompt:
  - {name: role, file: prompts/role.md}
  - {name: case, file: prompts/case.md, role: user}
reply_skill_required: false
""",
    "prompts/role.md": b"judge\n",
    "prompts/case.md": b"{{ {'reply': reply, 'expected': expected} | tojson }}\n",
}


class FakeModel:
    """Answers with what `answer(system message, user message)` returns; keeps the user messages."""

    def __init__(self, answer: Callable[[str, str], str]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        system, user = (str(message["content"]) for message in request.messages[:2])
        self.asked.append(user)
        return ChatReply(self.answer(system, user), usage=Usage(10, 5), model=request.model, latency_ms=7)


def knows(system: str, user: str) -> str:
    """The agent answers what its role says it knows, else nothing useful."""
    return "right" if user in system.split() else "wrong"


def judge_reply(_system: str, user: str) -> str:
    right = json.loads(user)["reply"] == "right"
    return json.dumps(
        {"accuracy": int(right), "effectiveness": 1 if right else 0.5, "reasons": {}, "findings": []}
    )


def outage(kind: str = "server") -> Callable[[str, str], str]:
    def fail(_system: str, _user: str) -> str:
        raise ChatError("the endpoint is down", kind, retryable=True)  # type: ignore[arg-type]

    return fail


def make_case(key: str, split: str = "dev", category: str = "any") -> CaseData:
    request = {"danmaku": [{"user": "u", "text": key}], "history": []}
    return CaseData(key, category, "en", split, request, {}, {}, {"facts": []})


def make_harness(name: str = "shop", role: bytes = b"knows: q1 q2\n") -> Harness:
    judge = create_harness(ANNA, f"{name}-judge", "judge", JUDGE)
    harness = create_harness(ANNA, name, "agent", {**AGENT, "prompts/role.md": role}, judge=judge)
    # Enough for a test; the default takes a while.
    harness.policy = {"resamples": 199}
    harness.save(update_fields=["policy"])
    return harness


def make_version(harness: Harness, cases: Sequence[CaseData] | None = None) -> DatasetVersion:
    return import_dataset(ANNA, harness, "cases", cases or [make_case(f"q{n}") for n in range(1, 5)])


def make_evaluation(
    harness: Harness, commit: str = "main", version: DatasetVersion | None = None, **options: Any
) -> Evaluation:
    version = version or make_version(harness)
    return create_evaluation(DEV, harness, commit, version, model="m", judge_model="j", **options)


def run(
    evaluation: Evaluation,
    answer: Callable[[str, str], str] = knows,
    judge: Callable[[str, str], str] = judge_reply,
) -> FakeModel:
    """Work on the evaluation here; returns the model that answered as the agent."""
    policy = FakeModel(answer)
    scorer = build_scorer(evaluation, NamedModel(policy, "m"), NamedModel(FakeModel(judge), "j"))
    work_batch([evaluation], lambda _: scorer)
    return policy


def make_proposal(
    harness: Harness, role: bytes, title: str = "teach it", path: str = "prompts/role.md"
) -> Proposal:
    """A confirmed proposal whose branch changes one file of what is live."""
    repository = open_repository(harness)
    base = repository.resolve("main")
    proposal = Proposal.objects.create(harness=harness, title=title, base_commit=base)
    head = repository.commit(
        f"proposal/{proposal.pk}-x", {path: role}, parent=base, author=author_of(DEV), message=title
    )
    proposal.branch, proposal.head_commit, proposal.state = f"proposal/{proposal.pk}-x", head, "confirmed"
    proposal.save()
    return proposal


def measure(step: Step) -> Step:
    """Evaluate both sides of a step here; it has its verdict then."""
    for evaluation in steps.measure_step(DEV, step, model="m", judge_model="j"):
        run(evaluation)
        steps.settle_steps(evaluation)
    step.refresh_from_db()
    return step


MANY = [make_case(f"q{n}") for n in range(1, 41)]


def teach(*numbers: int) -> bytes:
    """The role of an agent that knows these questions."""
    return ("knows: " + " ".join(f"q{n}" for n in numbers) + "\n").encode()


def make_measured_step(role: bytes, known: bytes = b"knows: q1 q2\n") -> Step:
    """A measured step over 40 cases whose candidate has `role`."""
    harness = make_harness(role=known)
    make_version(harness, MANY)
    return measure(steps.merge_step(DEV, harness, [make_proposal(harness, role)]))


def move_live(harness: Harness, edits: dict[str, bytes]) -> str:
    """Make another version live, as a promotion would; returns its commit."""
    repository = open_repository(harness)
    number = harness.releases.count() + 1
    commit = repository.commit(
        "main", edits, parent=repository.resolve("main"), author=author_of(DEV), message="m"
    )
    repository.tag(f"release/{number}", commit, "m", author_of(DEV))
    harness.releases.create(
        number=number, kind=ReleaseKind.PROMOTION, commit=commit, tag=f"release/{number}", actor="x"
    )
    return commit
