"""Branches of proposals that others work on: pushed and fetched when asked for, and looked after by beat."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from celery import shared_task
from django.conf import settings

from evolution.actors import SYSTEM, Actor, Role
from evolution.adapters.remotes import read_remote
from evolution.errors import LoopError
from evolution.loop.jobs import job_progress
from evolution.loop.outside import FOLLOWED, fetch_branches, follow_branches, push_branch
from evolution.models import Harness, Job, Proposal
from harness_repo.git.errors import HarnessRepoError

logger = logging.getLogger(__name__)


@shared_task(name="evolution.follow_branches")
def follow_all() -> None:
    """Take what was pushed straight into our repositories."""
    for harness in Harness.objects.filter(proposals__state__in=FOLLOWED).distinct():
        _try(harness, partial(follow_branches, SYSTEM, harness))


@shared_task(name="evolution.fetch_branches")
def fetch_all() -> None:
    """Fetch from the remotes of harnesses whose proposals are under review, and take what was added there."""
    names = list(settings.HARNESS_REMOTES) if isinstance(settings.HARNESS_REMOTES, dict) else []
    for harness in Harness.objects.filter(name__in=names, proposals__state__in=FOLLOWED).distinct():
        _try(harness, partial(_fetch_quietly, harness))


def _fetch_quietly(harness: Harness) -> None:
    fetch_branches(SYSTEM, harness, read_remote(harness), is_round=True)


def _try(harness: Harness, work: Callable[[], object]) -> None:
    """One harness's trouble is not the others'; the next round tries again."""
    try:
        work()
    except (LoopError, HarnessRepoError) as error:
        logger.warning("branches of %s: %s", harness, error)
    except Exception:
        logger.exception("branches of %s", harness)


def push_asked(job: Job) -> tuple[dict[str, Any], str]:
    """Push the branch of the job's proposal."""
    proposal = Proposal.objects.select_related("harness").get(pk=job.target_id or 0)
    job_progress(job, 0, 1, f"pushing {proposal.branch}")
    commit = push_branch(_actor(job), proposal, read_remote(job.harness))
    return {"pushed": {proposal.branch: commit}}, f"{proposal.branch} {commit[:12]}"


def fetch_asked(job: Job) -> tuple[dict[str, Any], str]:
    """Fetch from the remote of the job's harness."""
    job_progress(job, 0, 1, "fetching")
    branches, skipped, moved = fetch_branches(_actor(job), job.harness, read_remote(job.harness))
    result = {
        "branches": len(branches),
        "skipped": dict(skipped),
        "moved": [proposal.pk for proposal in moved],
    }
    return result, f"{len(branches)} branches, {len(moved)} proposals moved"


def _actor(job: Job) -> Actor:
    """Whoever asked for it; the action has checked the role."""
    return Actor(job.created_by, Role.DEVELOPER)
