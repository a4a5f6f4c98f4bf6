"""Evolution steps and what each decision rests on."""

from django.db.models import Count, Prefetch, QuerySet

from evolution.models import Harness, Proposal, Step


def list_steps(harness: Harness) -> QuerySet[Step]:
    """Steps, newest first, with their proposals and verdicts."""
    proposals = Proposal.objects.order_by("id").only("id", "title", "state", "step_id", "harness_id")
    return (
        Step.objects.filter(harness=harness)
        .select_related("verdict", "base_evaluation", "candidate_evaluation")
        .prefetch_related(Prefetch("proposals", proposals))
        .annotate(n_proposals=Count("proposals"))
        .order_by("-number")
    )


def list_step_proposals(step: Step) -> list[Proposal]:
    """The proposals merged in a step, with their clusters."""
    proposals = step.proposals.select_related("diagnosis__cluster").defer("diagnosis__cluster__centroid")
    return list(proposals.order_by("id"))
