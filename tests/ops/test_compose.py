"""docker-compose.yml says what the settings read. No engine runs in the tests: the steps are in test_production."""

import re

import pytest
import yaml

from tests.ops.conftest import ROOT


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, object]]:
    loaded: dict[str, dict[str, dict[str, object]]] = yaml.safe_load(
        (ROOT / "docker-compose.yml").read_text()
    )
    return loaded["services"]


def test_it_runs_the_five_parts_and_the_migration(services: dict[str, dict[str, object]]) -> None:
    assert set(services) == {"postgres", "redis", "migrate", "web", "worker", "beat"}
    assert all("healthcheck" in services[name] for name in ("postgres", "redis", "web", "worker"))


def test_web_and_worker_share_the_repositories(services: dict[str, dict[str, object]]) -> None:
    assert services["web"]["volumes"] == services["worker"]["volumes"]


def test_what_it_sets_is_read_by_the_settings(services: dict[str, dict[str, object]]) -> None:
    read = set(re.findall(r'env\.?\w*\("(\w+)"', (ROOT / "workbench" / "settings.py").read_text()))
    environment = services["web"]["environment"]
    assert isinstance(environment, dict)
    assert set(environment) <= read
