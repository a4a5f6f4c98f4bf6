from pathlib import Path

import pytest

from harness_repo.git import gitio
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import FILES


@pytest.fixture
def author() -> Author:
    return Author("张三", "zhang@example.org")


@pytest.fixture
def repo(tmp_path: Path, author: Author) -> HarnessRepository:
    return HarnessRepository.create(tmp_path / "h.git", FILES, author=author, message="First version")


@pytest.fixture
def impatient_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have git give up on another's lock after 0.1 seconds instead of 3."""
    settings = tuple(setting.replace("Timeout=3000", "Timeout=100") for setting in gitio._SETTINGS)
    assert settings != gitio._SETTINGS
    monkeypatch.setattr(gitio, "_SETTINGS", settings)
