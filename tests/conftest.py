"""What every test gets: a real PostgreSQL, a `var` of its own, no broker, plain static files."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from django.conf import settings as django_settings
from django.db import connections
from pytest_django import DjangoDbBlocker, Settings

from evolution.limits import shares
from tests.audit_trail import let_tests_empty_it
from workbench.embedded.postgres import postgres_server


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the browser's tests last: Playwright leaves an event loop running, and asyncio refuses a second one."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture(scope="session")
def database_home() -> Iterator[Path]:
    """A short folder: a unix socket's path is limited to 107 bytes, which pytest's own folders may exceed."""
    home = Path(tempfile.mkdtemp(prefix="workbench-test-"))
    yield home
    shutil.rmtree(home)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    request: pytest.FixtureRequest,
    django_db_modify_db_settings_parallel_suffix: None,
) -> Iterator[None]:
    """Start a PostgreSQL for this session (each xdist worker has its own), unless DATABASE_URL names one."""
    if not django_settings.EMBEDDED_DATABASE:
        yield
        return
    server = postgres_server(request.getfixturevalue("database_home"), durable=False)
    with server.in_use():
        connections["default"].settings_dict["HOST"] = str(server.spec.socket_folder)
        yield
        connections.close_all()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Let the database be emptied after tests whose transactions are real."""
    with django_db_blocker.unblock():
        let_tests_empty_it()


@pytest.fixture(autouse=True)
def _own_var(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests out of the tree's own `var`; folders appear when something asks for them."""
    var = tmp_path_factory.getbasetemp() / "var"
    settings.VAR_DIR = var
    settings.REPOSITORIES_DIR = var / "repositories"
    settings.IMPORTS_DIR = var / "imports"
    settings.MEDIA_ROOT = var / "media"


@pytest.fixture(autouse=True)
def _plain_static_files(settings: Settings) -> None:
    """Serve static files without collecting them first."""
    settings.WHITENOISE_AUTOREFRESH = True
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


@pytest.fixture(autouse=True)
def _own_limits() -> None:
    """Keep what a test holds of limits, and did not give back, from being told to the database of the next one."""
    shares._start_anew()


@pytest.fixture(autouse=True, scope="session")
def _no_broker() -> None:
    """A task that is sent goes nowhere; tests that want it run call it, or start a real worker."""
    from workbench.celery import app  # noqa: PLC0415  after Django's set-up

    assert isinstance(app, Celery)
    app.conf.update(broker_url="memory://", broker_transport_options={})


@pytest.fixture
def run_tasks_at_once() -> Iterator[None]:
    """Run each task where it is sent, and raise what it raises."""
    from workbench.celery import app  # noqa: PLC0415  after Django's set-up

    app.conf.update(task_always_eager=True, task_eager_propagates=True)
    yield
    app.conf.update(task_always_eager=False, task_eager_propagates=False)
