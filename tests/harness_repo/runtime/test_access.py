import ipaddress
import socket

import pytest

from harness_repo.format.tools import Tool
from harness_repo.runtime.access import NO_ACCESS, AccessDenied, Secret, ToolAccess, origin_of
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.runtime.sources.network import may_lead_to

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


MACHINES_OWN = [
    "169.254.169.254", "::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::5601:5601", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
    "fd00:c1::a9fe:a9fe", "100.100.100.200", "168.63.129.16", "192.0.0.192", "::", "224.0.0.1", "ff02::1",
]  # fmt: skip
NOT_PUBLIC = [
    "127.0.0.1", "::1", "10.0.0.5", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "fec0::1", "::10.0.0.5",
    "::ffff:10.0.0.5", "64:ff9b::a00:5", "64:ff9b:1::a00:5", "::ffff:0:10.0.0.5", "2002:a00:5::1", "240.0.0.1",
    "255.255.255.255", "0.1.2.3", "2001:db8::1",
]  # fmt: skip


@pytest.mark.parametrize("address", [*MACHINES_OWN, *NOT_PUBLIC])
def test_a_name_does_not_lead_to_what_is_not_public(address: str) -> None:
    assert not may_lead_to("shop.example", address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"])
def test_a_name_leads_to_public_addresses(address: str) -> None:
    assert may_lead_to("shop.example", address)


@pytest.mark.parametrize("address", MACHINES_OWN)
def test_not_even_a_network_opens_a_machines_own_addresses(address: str) -> None:
    every = [ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")]
    assert not may_lead_to("shop.example", address, every)


def test_a_network_opens_its_addresses_to_names() -> None:
    networks = ToolAccess(frozenset({"shop.example", "10.1.0.0/16", "[fd12::]/16"})).networks
    addresses = ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1", "10.2.0.1", "fd13::1", "127.0.0.1"]
    assert [may_lead_to("shop.example", one, networks) for one in addresses] == [True] * 3 + [False] * 3


def test_localhost_is_this_machine_and_nothing_else() -> None:
    assert may_lead_to("localhost", "127.0.0.1")
    assert may_lead_to("localhost", "::1")
    assert not may_lead_to("localhost", "10.0.0.5")
    assert not may_lead_to("notlocalhost", "127.0.0.1")


@pytest.mark.parametrize("network", ["10.1.2.3/16", "10.0.0.0/33", "shop.example/8"])
def test_a_network_that_is_none_is_refused(network: str) -> None:
    with pytest.raises(ValueError, match=r"no network|more or less than a host"):
        ToolAccess(frozenset({network}))


def test_grants_can_be_read_again_and_a_secret_goes_to_no_network() -> None:
    access = ToolAccess(frozenset({"shop.example", "10.1.0.0/16"}))
    assert ToolAccess(access.hosts) == access
    with pytest.raises(ValueError, match="host"):
        Secret("tok-1", frozenset({"10.1.0.0/16"}))


async def test_an_address_that_was_granted_is_not_open_to_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of somebody else's that leads to a service of this machine."""
    find = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *rest, **more: find("127.0.0.1", *rest, **more))
    url = "http://api.partner.example:9"
    tool = Tool("t", "d", {"type": "object"}, {"kind": "http", "url": f"{url}/", "seconds": 3})
    access = ToolAccess(hosts=frozenset({url, "http://127.0.0.1:9"}))
    async with ToolSandbox({"t": tool}, {}, access=access) as sandbox:
        outcome = await sandbox.call("t", "{}")
    assert (
        outcome.error == "permission_denied: api.partner.example leads to an address that tools may not reach"
    )


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe"])
async def test_a_granted_name_that_leads_to_metadata_is_refused(host: str) -> None:
    """Ways of writing 169.254.169.254 that only the resolver understands, as it would a record of somebody's."""
    tool = Tool("t", "d", {"type": "object"}, {"kind": "http", "url": f"http://{host}/latest", "seconds": 3})
    access = ToolAccess(hosts=frozenset({f"http://{host}"}))
    async with ToolSandbox({"t": tool}, {}, access=access) as sandbox:
        outcome = await sandbox.call("t", "{}")
    assert outcome.error == f"permission_denied: {host} leads to an address that tools may not reach"


def test_a_refusal_holds_whatever_was_granted_and_says_why() -> None:
    access = ToolAccess(frozenset({"shop.example.com"}), refusal="not in this evaluation")
    with pytest.raises(AccessDenied, match="not in this evaluation"):
        access.check_source({"kind": "http", "url": "https://shop.example.com/items/{link_id}"})
