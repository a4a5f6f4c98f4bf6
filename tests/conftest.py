"""What every test gets: a real PostgreSQL, a `var` of its own, no broker, plain static files."""

import gc
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from django.conf import settings as django_settings
from django.db import connections
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from evolution.limits import shares
from tests.audit_trail import let_tests_empty_it
from workbench.embedded.postgres import postgres_server


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the browser's tests last: Playwright leaves an event loop running, and asyncio refuses a second one."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture(autouse=True, scope="module")
def _spare_the_collector() -> None:
    """Take what stays for good from the collector: a round over it takes 0.4 s, and statsmodels asks for many."""
    gc.collect()
    gc.freeze()


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


@pytest.fixture(autouse=True, scope="session")
def _settings_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A `var` away from the tree's own, static files that nobody collected, passwords that are hashed fast.

    Folders appear when something asks for them. A test that wants something else takes `settings`.
    """
    var = tmp_path_factory.getbasetemp() / "var"
    static_files = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    with override_settings(
        VAR_DIR=var,
        REPOSITORIES_DIR=var / "repositories",
        IMPORTS_DIR=var / "imports",
        MEDIA_ROOT=var / "media",
        WHITENOISE_AUTOREFRESH=True,
        STORAGES={**django_settings.STORAGES, "staticfiles": static_files},
        # Django's own takes a quarter of a second for each account and each sign-in.
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    ):
        yield


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
