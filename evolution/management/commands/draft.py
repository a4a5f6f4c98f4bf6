"""Has the editor draft proposals."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from evolution.actions.harnesses import ensure_starter
from evolution.actions.proposals import start_draft
from evolution.actors import SYSTEM
from evolution.errors import LoopError
from evolution.management.running import run_here
from evolution.models import Diagnosis, Harness, Job, Proposal
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

    help = "Draft the change of one diagnosis, or of every cluster's latest that has no proposal yet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--harness", default=settings.DEFAULT_HARNESS, help="default: %(default)s")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--diagnosis", type=int, metavar="ID")
        which.add_argument("--all", action="store_true", help="all diagnoses without a proposal (default)")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Draft one proposal after the other; ends with an error when one came to nothing."""
        try:
            harness = ensure_starter(SYSTEM, options["harness"])
            proposals = [self._draft(each) for each in self._choose(harness, options["diagnosis"])]
        except LoopError as error:
            raise CommandError(str(error)) from None
        drafted = [proposal for proposal in proposals if proposal.state != ProposalState.FAILED]
        self._write(drafted, as_json=options["as_json"], nothing=not proposals)
        failed = [proposal for proposal in proposals if proposal.state == ProposalState.FAILED]
        if failed:
            raise CommandError("\n".join(f"{proposal}: {proposal.reason}" for proposal in failed))

    def _draft(self, diagnosis: Diagnosis) -> Proposal:
        proposal = start_draft(SYSTEM, diagnosis, enqueue=False)
        waiting = Job.objects.filter(kind=JobKind.DRAFT, target_id=proposal.pk, state=JobState.QUEUED)
        for job in waiting:
            run_here(job)
        proposal.refresh_from_db()
        return proposal

    def _choose(self, harness: Harness, number: int | None) -> list[Diagnosis]:
        diagnoses = Diagnosis.objects.filter(harness=harness)
        if number is not None:
            chosen = list(diagnoses.filter(pk=number))
            if not chosen:
                raise CommandError(f"{harness} has no diagnosis {number}")
            return chosen
        latest = diagnoses.order_by("cluster_id", "-pk").distinct("cluster_id").values("pk")
        waiting = diagnoses.filter(pk__in=latest).exclude(state=DiagnosisState.REJECTED)
        return list(waiting.exclude(proposals__state__in=UNDER_WAY).order_by("pk"))

    def _write(self, proposals: list[Proposal], *, as_json: bool, nothing: bool) -> None:
        shown = [
            {
                "id": proposal.pk,
                "branch": proposal.branch,
                "commit": proposal.head_commit,
                "title": proposal.title,
                "manifest": proposal.manifest,
            }
            for proposal in proposals
        ]
        if as_json:
            self.stdout.write(json.dumps({"proposals": shown}, ensure_ascii=False))
            return
        if nothing:
            self.stdout.write(_("nothing to draft: no diagnosis is without a proposal"))
        for entry in shown:
            self.stdout.write("{id:>4}  {branch}  {title}".format(**entry))
