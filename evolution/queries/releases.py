"""What was live when, who made it so, and why."""

from django.db.models import Avg, Q, QuerySet

from evolution.models import Harness, Release
from evolution.states import Split


def list_releases(harness: Harness) -> QuerySet[Release]:
    """Releases, newest first, with the mean scores (0-1) of their evaluations, guard cases left out."""
    releases = Release.objects.filter(harness=harness)
    outside_guard = ~Q(evaluation__results__case__split=Split.GUARD)
    return (
        releases.select_related("step", "evaluation", "dataset_version__dataset")
        .annotate(
            accuracy=Avg("evaluation__results__accuracy", filter=outside_guard),
            effectiveness=Avg("evaluation__results__effectiveness", filter=outside_guard),
        )
        .order_by("-number")
    )


def live_release(harness: Harness) -> Release | None:
    """The release that is live: the newest."""
    return Release.objects.filter(harness=harness).order_by("-number").first()
