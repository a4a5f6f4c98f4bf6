"""What was live when, who made it so, and what was measured of it."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Avg, Q, QuerySet

from evolution.loop.evaluation import UNDISTURBED
from evolution.loop.lineage import find_unreleased_main
from evolution.loop.promotion import newest_measurement
from evolution.loop.repositories import open_repository
from evolution.models import Evaluation, Harness, Release
from evolution.states import EvaluationState, Split
from harness_repo.git.errors import HarnessRepoError


@dataclass(frozen=True)
class MeasuredRelease:
    """A release with what was measured of it, if anything was."""

    release: Release
    # with `accuracy` and `effectiveness`, means on the 0-1 scale, guard cases left out
    evaluation: Evaluation | None
    # the release was made before it was measured
    is_later: bool


def list_releases(harness: Harness) -> list[MeasuredRelease]:
    """Releases, newest first; one that is bound to no evaluation has the newest finished one of its commit."""
    releases = list(Release.objects.filter(harness=harness).select_related("step").order_by("-number"))
    later = _finished_by_commit(harness, [release.commit for release in releases])
    bound = _with_scores(harness).in_bulk([release.evaluation_id or 0 for release in releases])
    return [
        MeasuredRelease(
            release,
            bound.get(release.evaluation_id or 0) or later.get(release.commit),
            is_later=release.evaluation_id is None and release.commit in later,
        )
        for release in releases
    ]


def _finished_by_commit(harness: Harness, commits: list[str]) -> dict[str, Evaluation]:
    """The newest finished evaluation of each commit."""
    finished = _with_scores(harness).filter(UNDISTURBED, commit__in=commits, state=EvaluationState.FINISHED)
    return {evaluation.commit: evaluation for evaluation in finished.order_by("id")}


def _with_scores(harness: Harness) -> QuerySet[Evaluation]:
    outside_guard = ~Q(results__case__split=Split.GUARD)
    return (
        Evaluation.objects.filter(harness=harness)
        .select_related("dataset_version__dataset")
        .annotate(
            accuracy=Avg("results__accuracy", filter=outside_guard),
            effectiveness=Avg("results__effectiveness", filter=outside_guard),
        )
    )


def live_release(harness: Harness) -> Release | None:
    """The release that is live: the newest."""
    return Release.objects.filter(harness=harness).order_by("-number").first()


def unreleased_main(harness: Harness) -> str:
    """The commit of main when it is not the newest release, else empty; empty too when git can't be asked."""
    try:
        return find_unreleased_main(harness)
    except HarnessRepoError:
        return ""


def live_evaluation(harness: Harness) -> Evaluation | None:
    """What was measured of the live version: of its own commit, or of an older release that had the same files.

    A roll back makes a commit of its own, which nobody measures: its files were measured as the older release.
    """
    releases = list(
        Release.objects.filter(harness=harness).select_related("harness", "evaluation").order_by("-number")
    )
    if not releases:
        return None
    live = releases[0]
    if found := _evaluation_of(live):
        return found
    repository = open_repository(harness)
    same = (older for older in releases[1:] if not repository.changed_files(older.commit, live.commit))
    return next(filter(None, map(_evaluation_of, same)), None)


def _evaluation_of(release: Release) -> Evaluation | None:
    return release.evaluation or newest_measurement(release.harness, release.commit)


def list_release_days(harness: Harness) -> list[tuple[datetime, str]]:
    """When each version became live, and its tag, the oldest first."""
    releases = Release.objects.filter(harness=harness).order_by("number")
    return list(releases.values_list("created_at", "tag"))
