"""Inside promotion: which steps' promotions a version that was live consists of, read from the release history."""

from collections.abc import Sequence

from evolution.loop.repositories import open_repository
from evolution.models import Harness, Release
from evolution.states import ReleaseKind
from harness_repo.git.repository import MAIN, HarnessRepository


def find_live_steps(harness: Harness, commit: str) -> set[int]:
    """Ids of the steps that are live when the files of `commit` are.

    A promotion adds its step to what it was built on; a roll back is what the older release with its files was.
    """
    repository = open_repository(harness)
    releases = list(harness.releases.order_by("-number"))
    live: set[int] = set()
    while (release := _find_release(repository, releases, commit)) is not None:
        if release.kind == ReleaseKind.INITIAL:
            break
        releases = [older for older in releases if older.number < release.number]
        if release.kind == ReleaseKind.PROMOTION and release.step is not None:
            live.add(release.step.pk)
            commit = release.step.base_commit
        else:
            commit = release.commit
    return live


def _find_release(repository: HarnessRepository, releases: Sequence[Release], commit: str) -> Release | None:
    """The newest release of the commit, else of its files, else of something that it builds on."""
    same = (release for release in releases if release.commit == commit)
    alike = (release for release in releases if not repository.changed_files(release.commit, commit))
    below = (release for release in releases if repository.is_ancestor(release.commit, commit))
    return next(same, None) or next(alike, None) or next(below, None)


def find_unreleased_main(harness: Harness) -> str:
    """The commit of main when no release names it, else empty.

    It is what a decision left that died between git and its records, or what somebody pushed by hand.
    """
    main = open_repository(harness).resolve(MAIN)
    newest = harness.releases.first()
    return "" if newest is not None and newest.commit == main else main
