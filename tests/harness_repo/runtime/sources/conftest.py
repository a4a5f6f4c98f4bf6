from collections.abc import Iterator

import pytest

from tests.harness_repo.runtime.sources.web import Shop, serve_shop


@pytest.fixture
def shop() -> Iterator[Shop]:
    with serve_shop() as serving:
        yield serving
