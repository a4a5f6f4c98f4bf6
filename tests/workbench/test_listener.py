import socket

import pytest

from workbench.listener import AddressRefused, PortTaken, bind_listener, describe_url


def test_a_taken_port_is_said() -> None:
    with bind_listener("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"port {port} on 127.0.0.1 is in use"):
            bind_listener("127.0.0.1", port)


def test_the_web_server_can_inherit_it() -> None:
    with bind_listener("127.0.0.1", 0) as listener:
        assert listener.get_inheritable()
        port = listener.getsockname()[1]
        assert describe_url(listener) == f"http://127.0.0.1:{port}/"
        socket.create_connection(("127.0.0.1", port)).close()


def test_every_address_is_shown_as_one_to_open() -> None:
    with bind_listener("0.0.0.0", 0) as listener:  # noqa: S104  it is what is tested
        assert describe_url(listener).startswith("http://127.0.0.1:")


# The first is of a network for documentation (RFC 5737): no machine has it.
@pytest.mark.parametrize("host", ["203.0.113.9", "a" * 80, "not an address"])
def test_an_address_that_is_not_ours_is_said_with_what_to_do(host: str) -> None:
    with pytest.raises(AddressRefused, match="WEB_HOST must be an address of this machine"):
        bind_listener(host, 0)
