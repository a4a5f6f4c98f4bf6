"""What stands against approving a version of a proposal's branch, found once: pages and decisions ask often."""

from functools import lru_cache
from pathlib import Path

from django.utils.translation import get_language

from evolution.loop.outside_files import find_version_faults
from evolution.loop.repositories import open_repository
from evolution.loop.version_size import find_size_fault
from evolution.models import Proposal
from harness_repo.git.repository import HarnessRepository


def list_version_faults(proposal: Proposal) -> list[str]:
    """Texts for people, none where nothing stands against it; a version that is too large is not read.

    Raises HarnessRepoError when the repository can't be read.
    """
    path = open_repository(proposal.harness).path
    return list(_find(path, proposal.base_commit, proposal.head_commit, get_language()))


@lru_cache(maxsize=64)
def _find(path: Path, base: str, head: str, _language: str | None) -> tuple[str, ...]:
    repository = HarnessRepository(path)
    if fault := find_size_fault(repository, base, head):
        return (fault,)
    return tuple(find_version_faults(repository.snapshot(base), repository.snapshot(head)))
