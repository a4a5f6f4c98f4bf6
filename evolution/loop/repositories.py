"""Beside the stages: a harness's git repository, and a version of it as the runtime reads it."""

import functools
from pathlib import Path

from django.conf import settings

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


@functools.lru_cache(maxsize=32)
def _read_version(path: Path, commit: str) -> HarnessState:
    return read_harness(HarnessRepository(path).files(commit))
