from pathlib import Path

import pytest

from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import FILES


@pytest.fixture
def author() -> Author:
    return Author("张三", "zhang@example.org")


@pytest.fixture
def repo(tmp_path: Path, author: Author) -> HarnessRepository:
    return HarnessRepository.create(tmp_path / "h.git", FILES, author=author, message="First version")
