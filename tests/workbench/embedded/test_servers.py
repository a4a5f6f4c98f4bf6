import pytest
from pytest_django import Settings

from workbench.embedded.servers import embedded_servers, needs_servers


@pytest.mark.parametrize(
    "line",
    [
        "manage.py",
        "manage.py help",
        "manage.py makemessages -l zh_Hans",
        "manage.py migrate --help",
        "manage.py up",
        "manage.py collectstatic",
        "manage.py check",
        "manage.py --version",
        "manage.py check_harness templates --json",
        "manage.py check_harness --ref main --adopt no/such/path",
        "manage.py check_harness",
        "manage.py check_harness templates --ref",
    ],
)
def test_commands_without_a_database_start_nothing(line: str) -> None:
    assert not needs_servers(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "manage.py migrate",
        "manage.py demo --json",
        "manage.py check --database default",
        "manage.py check_harness live_commerce",
        "manage.py check_harness --ref templates live_commerce",
    ],
)
def test_other_commands_get_one(line: str) -> None:
    assert needs_servers(line.split())


def test_real_servers_replace_the_embedded_ones(settings: Settings) -> None:
    settings.EMBEDDED_DATABASE, settings.EMBEDDED_BROKER = False, True
    assert [server.spec.name for server in embedded_servers()] == ["valkey"]
    settings.EMBEDDED_BROKER = False
    assert embedded_servers() == []
