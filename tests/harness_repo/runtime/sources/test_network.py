"""Encryption: a certificate has to be good, and for the name that was granted."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_repo.format.tools import Tool
from harness_repo.runtime.access import ToolAccess
from harness_repo.runtime.sandbox import ToolOutcome, ToolSandbox
from harness_repo.runtime.sources import network
from tests.harness_repo.runtime.sources.web import Shop, serve_shop

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that vouches for itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    command += ["-addext", "subjectAltName=DNS:localhost", "-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run(command, check=True, capture_output=True)
    return paths


@pytest.fixture
def shop(certificate: tuple[Path, Path]) -> Iterator[Shop]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with serve_shop(context) as serving:
        yield serving


@pytest.fixture
def trusted(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    network.tls_context.cache_clear()
    yield
    network.tls_context.cache_clear()


async def ask(shop: Shop, name: str) -> ToolOutcome:
    url = f"https://{name}:{shop.port}/items/3"
    tools = {"t": Tool("t", "d", {"type": "object"}, {"kind": "http", "url": url, "seconds": 5})}
    access = ToolAccess(hosts=frozenset({f"{name}:{shop.port}"}))
    async with ToolSandbox(tools, {}, access=access) as sandbox:
        return await sandbox.call("t", "{}")


@pytest.mark.usefixtures("trusted")
async def test_a_host_that_proves_its_name_is_asked(shop: Shop) -> None:
    assert (await ask(shop, "localhost")).error is None


@pytest.mark.usefixtures("trusted")
async def test_a_certificate_for_another_name_is_a_connection_error(shop: Shop) -> None:
    outcome = await ask(shop, "127.0.0.1")
    assert (outcome.error or "").startswith("connection: ConnectError")
    assert shop.requests == []


async def test_a_certificate_that_nobody_vouches_for_is_a_connection_error(shop: Shop) -> None:
    outcome = await ask(shop, "localhost")
    assert (outcome.error or "").startswith("connection: ConnectError")
    assert shop.requests == []
