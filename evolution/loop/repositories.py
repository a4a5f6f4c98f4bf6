"""Beside the stages: a harness's git repository, and a version of it as the runtime reads it."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.models import Harness
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.format.harness import read_harness
from harness_repo.git.repository import HarnessRepository


def open_repository(harness: Harness) -> HarnessRepository:
    """Return the harness's bare repository; nothing is held open."""
    return HarnessRepository(Path(settings.REPOSITORIES_DIR) / harness.path)


def read_version(harness: Harness, commit: str) -> HarnessState:
    """Return the harness as it was at a commit, given by its full id; read once per process.

    Raises MissingRef when the repository has no such commit.
    """
    return _read_version(open_repository(harness).path, commit)


def check_has_agent(harness: Harness, commit: str, runner: Mapping[str, Any] | None = None) -> None:
    """Raise LoopError when a version can be run by nobody: no harness.yaml for our runtime, and no other runner.

    The runner is the harness's unless another one is given.
    """
    if harness.runner if runner is None else runner:
        return
    if any(problem.code == "config_missing" for problem in read_version(harness, commit).problems):
        text = _(
            "%(harness)s has no harness.yaml at %(commit)s, so the workbench's runtime can't run it: set a runner first"
        )
        raise LoopError(text % {"harness": harness, "commit": commit[:8]})


@functools.lru_cache(maxsize=32)
def _read_version(path: Path, commit: str) -> HarnessState:
    return read_harness(HarnessRepository(path).files(commit))
