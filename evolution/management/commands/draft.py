"""Has the editor draft proposals."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db.models import Sum
from django.utils.translation import gettext as _

from evolution.actions.harnesses import ensure_starter
from evolution.actions.proposals import start_draft
from evolution.actors import SYSTEM
from evolution.adapters.chat import Role
from evolution.adapters.model_choice import check_model
from evolution.errors import LoopError
from evolution.management.running import run_here
from evolution.models import Diagnosis, Harness, Job, Proposal
from evolution.prompts.diagnosis import NOT_THE_HARNESS
from evolution.states import DiagnosisState, JobKind, JobState, ProposalState

# With one of these, a diagnosis needs no other proposal.
UNDER_WAY = (
    ProposalState.DRAFTED,
    ProposalState.CONFIRMED,
    ProposalState.IN_STEP,
    ProposalState.RELEASED,
    ProposalState.REJECTED,
)


class Command(BaseCommand):
    """Runs in this process; no worker is needed."""

    help = "Draft the change of one diagnosis, or of every cluster's likeliest one that has no proposal yet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--harness", default=settings.DEFAULT_HARNESS, help="default: %(default)s")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--diagnosis", type=int, metavar="ID")
        which.add_argument("--all", action="store_true", help="all diagnoses without a proposal (default)")
        parser.add_argument(
            "--model", default="", metavar="NAME", help="draft by this model, beside what others drafted"
        )
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Draft one proposal after the other; ends with an error when one came to nothing."""
        model = options["model"].strip()
        try:
            check_model(Role.EDITOR, model)
            harness = ensure_starter(SYSTEM, options["harness"])
        except LoopError as error:
            raise CommandError(str(error)) from None
        proposals, faults = list[Proposal](), list[str]()
        for diagnosis in self._choose(harness, options["diagnosis"], model):
            # What was made and paid is told, whatever becomes of the next.
            try:
                proposals.append(self._draft(diagnosis, model))
            except (LoopError, CommandError) as error:
                faults.append(str(error))
        self._write(proposals, as_json=options["as_json"], nothing=not proposals and not faults)
        failed = [proposal for proposal in proposals if proposal.state == ProposalState.FAILED]
        faults += [f"{proposal}: {proposal.reason}" for proposal in failed]
        if faults:
            raise CommandError("\n".join(faults))

    def _draft(self, diagnosis: Diagnosis, model: str) -> Proposal:
        proposal = start_draft(SYSTEM, diagnosis, model, enqueue=False)
        waiting = Job.objects.filter(kind=JobKind.DRAFT, target_id=proposal.pk, state=JobState.QUEUED)
        for job in waiting:
            run_here(job)
        return Proposal.objects.select_related("diagnosis__cluster").get(pk=proposal.pk)

    def _choose(self, harness: Harness, number: int | None, model: str) -> list[Diagnosis]:
        diagnoses = Diagnosis.objects.filter(harness=harness)
        if number is not None:
            chosen = list(diagnoses.filter(pk=number))
            if not chosen:
                raise CommandError(f"{harness} has no diagnosis {number}")
            return chosen
        best = _list_likeliest(diagnoses.select_related("cluster").order_by("-pk"))
        under_way = Proposal.objects.filter(diagnosis__in=best, state__in=UNDER_WAY)
        under_way = under_way.filter(model=model) if model else under_way
        done = set(under_way.values_list("diagnosis_id", flat=True))
        return [diagnosis for diagnosis in best if diagnosis.pk not in done]

    def _write(self, proposals: Sequence[Proposal], *, as_json: bool, nothing: bool) -> None:
        if as_json:
            shown = [_describe(proposal) for proposal in proposals]
            self.stdout.write(json.dumps({"proposals": shown}, ensure_ascii=False))
            return
        if nothing:
            self.stdout.write(_("nothing to draft: no diagnosis is without a proposal"))
        for proposal in proposals:
            if proposal.state != ProposalState.FAILED:
                self.stdout.write(_line(proposal))


def _list_likeliest(newest_first: Iterable[Diagnosis]) -> list[Diagnosis]:
    """Of each cluster's newest answer, the likeliest hypothesis that is not rejected and blames the harness."""
    answers: dict[int, list[Diagnosis]] = {}
    for diagnosis in newest_first:
        found = answers.setdefault(diagnosis.cluster_id, [])
        if not found or (found[0].exchange_id is not None and found[0].exchange_id == diagnosis.exchange_id):
            found.append(diagnosis)
    ranked = [sorted(found, key=lambda each: (each.rank, -each.pk)) for found in answers.values()]
    best = [next(filter(_is_draftable, found), None) for found in ranked]
    return sorted((each for each in best if each is not None), key=lambda each: each.pk)


def _is_draftable(diagnosis: Diagnosis) -> bool:
    is_open = diagnosis.state != DiagnosisState.REJECTED and not diagnosis.handled_as
    return is_open and diagnosis.part not in NOT_THE_HARNESS


def _line(proposal: Proposal) -> str:
    """A proposal with the diagnosis that it is of, and what its drafts cost."""
    cost, seconds = _spent(proposal)
    paid = "" if cost is None else f", {cost:.4f} {settings.MODEL_CURRENCY}"
    about = f"diagnosis {proposal.diagnosis_id}, {proposal.model}, {seconds:.1f} s{paid}"
    return f"{proposal.pk:>4}  {proposal.branch}  {proposal.title}  ({about})"


def _spent(proposal: Proposal) -> tuple[float | None, float]:
    """What all its drafts cost and how long they took; one answer of unknown cost makes the sum unknown."""
    asked = proposal.exchanges.aggregate(cost=Sum("cost"), seconds=Sum("seconds"))
    is_known = not proposal.exchanges.filter(cost=None).exists() and asked["cost"] is not None
    return float(asked["cost"]) if is_known else None, round(asked["seconds"] or 0.0, 3)


def _describe(proposal: Proposal) -> dict[str, Any]:
    cost, seconds = _spent(proposal)
    diagnosis = proposal.diagnosis
    return {
        "id": proposal.pk,
        "branch": proposal.branch,
        "commit": proposal.head_commit,
        "base": proposal.base_commit,
        "title": proposal.title,
        "state": proposal.state,
        "diagnosis": proposal.diagnosis_id,
        "cluster": diagnosis.cluster.number if diagnosis is not None else None,
        "model": proposal.model,
        "manifest": proposal.manifest,
        "cost": cost,
        "seconds": seconds,
        "reason": proposal.reason,
    }
