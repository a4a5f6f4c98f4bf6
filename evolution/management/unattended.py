"""The loop without people: takes every diagnosis and proposal as the models made it, and decides by the verdicts.

For the demonstration only: it uses the same actions as the pages do, and nothing in it knows what will come out.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evolution.actions import cases, clusters, diagnosis, evaluations, proposals, reviews, steps
from evolution.actions.harnesses import create_harness
from evolution.actors import SYSTEM
from evolution.demonstration import load_cases
from evolution.errors import LoopError
from evolution.loop.datasets import import_dataset
from evolution.loop.evaluation import average_scores
from evolution.loop.promotion import advise, untried_clusters
from evolution.loop.reasons import explain_reasons
from evolution.loop.repositories import open_repository
from evolution.loop.stopping import BASELINE
from evolution.models import Cluster, Diagnosis, Evaluation, Harness, Proposal, Step
from evolution.prompts.diagnosis import NOT_THE_HARNESS
from evolution.queries.halves import Halves, read_halves
from evolution.states import HarnessKind, JobKind, JobState, Outcome, ProposalState
from evolution.tasks.evaluations import perform_evaluation
from evolution.tasks.jobs import perform_job
from harness_repo.git.repository import MAIN
from harness_repo.starters import starter_files

# How many clusters a step takes on: people pile up what looks good.
CLUSTERS_PER_STEP = 3
# A loop that neither stops nor runs out of clusters is broken.
MOST_STEPS = 12

Say = Callable[[str], None]


@dataclass(frozen=True)
class Entry:
    """A measured version of the series; `fixed` and `broken` count cases against the version it was built on."""

    version: str
    # 0-100
    accuracy: float
    effectiveness: float
    # a case passes with accuracy 1 and effectiveness 1
    fixed: int
    broken: int
    # baseline, promoted or rolled_back
    decision: str
    # of a step, its figures on held-in and held-out dev cases: see evolution.queries.halves
    halves: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The object that `demo --json` prints for it; without `halves` where there is no division."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Outcomes:
    """What a whole run came to."""

    harness: str
    steps: list[Entry]
    selected: str

    def to_dict(self) -> dict[str, object]:
        """The object that `demo --json` prints."""
        return {"steps": [entry.to_dict() for entry in self.steps], "selected": self.selected}


def make_fresh_harness() -> Harness:
    """Make `demo-<n>` from the starters, with a judge of its own, so that no earlier run or edit is in the way."""
    number = Harness.objects.filter(name__regex=r"^demo-\d+$").count() + 1
    while Harness.objects.filter(name=f"demo-{number}").exists():
        number += 1
    name = f"demo-{number}"
    judge = create_harness(SYSTEM, f"{name}-judge", HarnessKind.JUDGE, starter_files("judge"))
    return create_harness(SYSTEM, name, HarnessKind.AGENT, starter_files("live_commerce"), judge=judge)


class UnattendedLoop:
    """One run over one harness, from its first measurement to the stop."""

    def __init__(self, harness: Harness, say: Say) -> None:
        self.harness = harness
        self.say = say
        self.entries: list[Entry] = []

    def run(self) -> Outcomes:
        """Measure the baseline, then step after step until the early-stop rule ends it; LoopError without a step."""
        self._measure_baseline()
        last: Step | None = None
        for _ in range(MOST_STEPS):
            step = self._try_step()
            if step is None:
                break
            last = step
            advice = advise(self.harness)
            if advice.stop:
                self.say("stop: " + "; ".join(explain_reasons(reason.to_dict() for reason in advice.reasons)))
                break
        if last is None:
            raise LoopError("no step could be made: no cluster led to a proposal")
        selected = steps.stop_evolution(SYSTEM, last, "the early-stop rule says so")
        return Outcomes(self.harness.name, self.entries, selected)

    def _measure_baseline(self) -> None:
        import_dataset(SYSTEM, self.harness, "live_commerce", load_cases())
        baseline = evaluations.start_evaluation(SYSTEM, self.harness, "main", enqueue=False)
        self._perform(baseline)
        self._enter(baseline, BASELINE)
        self._take_failures(baseline)

    def _try_step(self) -> Step | None:
        """Draft, merge, measure and decide one step; None when nothing is left to draft."""
        drafted = self._draft()
        step = self._merge(drafted)
        if step is None:
            return None
        for evaluation in steps.evaluate_step(SYSTEM, step, enqueue=False):
            self._perform(evaluation)
        step.refresh_from_db()
        self._decide(step)
        return step

    def _draft(self) -> list[Proposal]:
        """Confirmed proposals for the largest clusters that nobody tried in vain."""
        confirmed: list[Proposal] = []
        taken_on = 0
        for cluster in untried_clusters(self.harness):
            if taken_on == CLUSTERS_PER_STEP:
                break
            drafted = self._draft_for(cluster)
            taken_on += bool(drafted)
            confirmed += drafted
        return confirmed

    def _draft_for(self, cluster: Cluster) -> list[Proposal]:
        """The confirmed proposals for a cluster; none when a model's answer was of no use."""
        job = diagnosis.start_diagnosis(SYSTEM, cluster, enqueue=False)
        perform_job(job.pk)
        job.refresh_from_db()
        if job.state != JobState.DONE:
            self.say(f"  {cluster.name}: no diagnosis: {job.message}")
            return []
        chosen = self._choose_hypotheses(job.result["diagnoses"])
        if not chosen:
            self.say(f"  {cluster.name}: not the harness's fault")
        return [proposal for each in chosen if (proposal := self._draft_one(cluster, each))]

    def _choose_hypotheses(self, diagnoses: Sequence[int]) -> list[Diagnosis]:
        """The likeliest one that blames the harness, and others that amend files which are there.

        A file that a further cause would have made is for a cluster of its own.
        """
        found = Diagnosis.objects.filter(pk__in=diagnoses).exclude(part__in=NOT_THE_HARNESS).order_by("rank")
        files = open_repository(self.harness).files(MAIN)
        return [each for place, each in enumerate(found) if not place or each.path in files]

    def _draft_one(self, cluster: Cluster, found: Diagnosis) -> Proposal | None:
        proposal = proposals.start_draft(SYSTEM, found, enqueue=False)
        waiting = self.harness.jobs.filter(kind=JobKind.DRAFT, target_id=proposal.pk, state=JobState.QUEUED)
        for draft in waiting:
            perform_job(draft.pk)
        proposal.refresh_from_db()
        if proposal.state != ProposalState.DRAFTED:
            self.say(f"  {cluster.name}: no draft: {proposal.reason}")
            return None
        if not reviews.approve_proposal(SYSTEM, proposal):
            self.say(f"  {cluster.name}: waits for a second reviewer: {proposal.title}")
            return None
        self.say(f"  {cluster.name}: {proposal.title}")
        return proposal

    def _merge(self, confirmed: Sequence[Proposal]) -> Step | None:
        """A step of as many of the proposals as go together, the first ones first."""
        for count in range(len(confirmed), 0, -1):
            try:
                step = steps.start_step(SYSTEM, self.harness, confirmed[:count])
            except LoopError as failure:
                self.say(f"  {failure}")
                continue
            for proposal in confirmed[count:]:
                proposals.reject_proposal(SYSTEM, proposal, "in conflict with a larger cluster's")
            return step
        return None

    def _decide(self, step: Step) -> None:
        verdict = step.verdict
        if verdict is None or step.candidate_evaluation is None:
            raise LoopError(f"{step} was not measured")
        why = "; ".join(explain_reasons(verdict.reasons))
        if verdict.outcome == Outcome.PROMOTE:
            steps.promote_step(SYSTEM, step, why)
        else:
            steps.roll_back_step(SYSTEM, step, why)
        figures = verdict.figures
        self._enter(
            step.candidate_evaluation,
            step.state,
            len(figures["fixed"]),
            len(figures["broken"]),
            read_halves(step),
        )
        self.say(f"  {step}: {verdict.outcome}, so {step.state}: {why}")
        if verdict.outcome == Outcome.PROMOTE:
            self._take_failures(step.candidate_evaluation)

    def _take_failures(self, evaluation: Evaluation) -> None:
        taken = cases.take_failures(SYSTEM, evaluation)
        job = clusters.start_clustering(SYSTEM, self.harness, enqueue=False)
        perform_job(job.pk)
        job.refresh_from_db()
        self.say(f"  failures taken in: {taken}; {job.message}")

    def _perform(self, evaluation: Evaluation) -> None:
        perform_evaluation(evaluation)

    def _enter(
        self,
        evaluation: Evaluation,
        decision: str,
        fixed: int = 0,
        broken: int = 0,
        halves: Halves | None = None,
    ) -> None:
        averages = average_scores(evaluation)
        entry = Entry(
            version=evaluation.commit,
            accuracy=round(averages.accuracy or 0.0, 2),
            effectiveness=round(averages.effectiveness or 0.0, 2),
            fixed=fixed,
            broken=broken,
            decision=str(decision),
            halves=halves.to_dict() if halves else None,
        )
        self.entries.append(entry)
        scores = f"accuracy {entry.accuracy:.2f}, effectiveness {entry.effectiveness:.2f}"
        self.say(f"{len(self.entries) - 1}: {entry.decision}: {scores}, fixed {fixed}, broken {broken}")
