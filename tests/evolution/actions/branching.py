"""A proposal's branch outside the workbench, for tests: what others do to it, and how it then stands."""

import subprocess
from pathlib import Path
from typing import Any

from pytest_django import Settings

from evolution.actions.branches import (
    start_fetch,
)
from evolution.actions.reviews import approve_proposal
from evolution.loop.outside import Here, Standing, There, read_standing
from evolution.loop.repositories import open_repository
from evolution.models import Harness, Job, Proposal
from evolution.tasks.jobs import perform_job
from harness_repo.git.objects import Author
from harness_repo.git.remotes import import_repository
from harness_repo.git.repository import HarnessRepository
from tests.evolution.measured import DEV, make_harness, make_proposal, teach

EVE = Author("Eve", "eve@example.org")
ROLE = "prompts/role.md"


def make_approved() -> Proposal:
    """A proposal as approved by somebody."""
    proposal = make_proposal(make_harness(), teach(1))
    Proposal.objects.filter(pk=proposal.pk).update(state="drafted")
    proposal.refresh_from_db()
    approve_proposal(DEV, proposal)
    return proposal


def make_remote(proposal: Proposal, address: Path, settings: Settings) -> HarnessRepository:
    """The team's repository, which has our main."""
    settings.HARNESS_REMOTES = {"shop": {"url": str(address), "name": "team"}}
    return import_repository(open_repository(proposal.harness).path, address)


def edit(
    repository: HarnessRepository, proposal: Proposal, content: bytes, path: str = ROLE, **more: Any
) -> str:
    """Somebody goes on with the branch, without the workbench."""
    options = {"parent": proposal.branch, "author": EVE, "message": "outside", **more}
    return repository.commit(proposal.branch, {path: content}, **options)


def rewrite(repository: HarnessRepository, proposal: Proposal, content: bytes) -> str:
    """Somebody forces the branch to a history without our commit."""
    head = repository.resolve(proposal.branch)
    return edit(repository, proposal, content, parent=proposal.base_commit, expected_head=head)


def fetch(harness: Harness) -> Job:
    job = start_fetch(DEV, harness, enqueue=False)
    perform_job(job.pk)
    job.refresh_from_db()
    return job


def standing(proposal: Proposal) -> Standing:
    proposal.refresh_from_db()
    return read_standing(proposal, "team")


def places(proposal: Proposal) -> tuple[Here, There]:
    found = standing(proposal)
    return found.here, found.there


def commit_odd_path(proposal: Proposal) -> str:
    """Somebody pushes a file whose name is not UTF-8, which only git itself can write."""
    path = str(open_repository(proposal.harness).path)

    def git(*arguments: str, stdin: bytes = b"") -> str:
        asked = ["git", "-C", path, "-c", "user.name=Eve", "-c", "user.email=eve@example.org", *arguments]
        return subprocess.run(asked, input=stdin, capture_output=True, check=True).stdout.decode().strip()

    blob = git("hash-object", "-w", "--stdin", stdin=b"x\n")
    tree = git("mktree", stdin=f"100644 blob {blob}\tnonutf".encode() + b"\xff.md\n")
    listed = git("ls-tree", proposal.branch)
    whole = git("mktree", stdin=f"{listed}\n040000 tree {tree}\tskills\n".encode())
    new = git("commit-tree", whole, "-p", proposal.head_commit, "-m", "odd")
    git("update-ref", f"refs/heads/{proposal.branch}", new)
    return new
