import pytest

from harness_repo.format.tools import Tool
from harness_repo.runtime.access import NO_ACCESS, AccessDenied, Secret, ToolAccess, origin_of
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.runtime.sources.network import is_forbidden

GRANTED = ToolAccess(hosts=frozenset({"shop.example", "other.example:8443", "http://plain.example"}))


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/x",
        "https://SHOP.example:443",
        "https://other.example:8443/?a=b",
        "http://plain.example:80/",
    ],
)
def test_a_granted_host_can_be_reached(url: str) -> None:
    GRANTED.check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.example/",  # not encrypted
        "https://plain.example/",
        "https://shop.example:8443/",
        "https://sub.shop.example/",
        "https://shop.example.evil.example/",
        "https://shop.example@evil.example/",
        "https://evil.example\\@shop.example/",
        "https://user:word@shop.example/",
        "https://shop.example./",
        "ftp://shop.example/",
        "file:///etc/passwd",
        "https:///x",
        "shop.example",
        "https://[::1",
        "",
    ],
)
def test_everything_else_cannot(url: str) -> None:
    with pytest.raises(AccessDenied):
        GRANTED.check_url(url)
    with pytest.raises(AccessDenied):
        NO_ACCESS.check_url(url)


def test_an_origin_has_its_port_written_out() -> None:
    assert origin_of("https://A.example/x?y") == "https://a.example:443"
    assert origin_of("http://[::1]:80/") == "http://[::1]:80"


def test_a_secret_is_in_no_text_about_it() -> None:
    secret = Secret("tok-1", frozenset({"shop.example"}))
    assert "tok-1" not in repr(ToolAccess(secrets={"A": secret}))


@pytest.mark.parametrize("value", ["", "a\r\nX-Other: 1", "a\0", "ключ"])
def test_a_secret_has_to_fit_into_a_header(value: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        Secret(value)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fe80::1",
        "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "::", "224.0.0.1", "ff02::1",
    ],
)  # fmt: skip
def test_a_machines_own_addresses_are_forbidden(address: str) -> None:
    assert is_forbidden(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.5", "::1", "93.184.216.34", "2606:2800:220:1::1"])
def test_other_addresses_are_not(address: str) -> None:
    assert not is_forbidden(address)


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe"])
async def test_a_granted_name_that_leads_to_metadata_is_refused(host: str) -> None:
    """Ways of writing 169.254.169.254 that only the resolver understands, as it would a record of somebody's."""
    tool = Tool("t", "d", {"type": "object"}, {"kind": "http", "url": f"http://{host}/latest", "seconds": 3})
    access = ToolAccess(hosts=frozenset({f"http://{host}"}))
    async with ToolSandbox({"t": tool}, {}, access=access) as sandbox:
        outcome = await sandbox.call("t", "{}")
    assert outcome.error == f"permission_denied: {host} leads to an address that tools may not reach"
