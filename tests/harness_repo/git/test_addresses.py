import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_repo.git.addresses import PROTOCOLS, RemotePolicy, check_address
from harness_repo.git.errors import BadRemote

EVERYTHING = RemotePolicy(protocols=PROTOCOLS)
HOSTILE = [
    "", "-uload", "--upload-pack=touch x", "ext::sh -c touch% x", "EXT::x", "fd::17", "transport::https://h/x",
    "ext://x/y", "git://h/x", "ftp://h/x", "ssh://-oProxyCommand=x/y", "ssh://user@-oProxyCommand=x/y", "-host:path",
    "user@-oProxyCommand=x:path", "host:-path", "https://user:secret@h/x", "https://user@h/x", "https:///x", "https://h",
    "https://h/x?y", "https://h/x#y", "https://h/x\ny", "https://h /x", "file://host/x", "https://[::1/x", "https://h:x/y",
    "ssh://a b@h/x", "https://h/\x00",
]  # fmt: skip


@pytest.mark.parametrize("address", HOSTILE)
def test_a_hostile_address_is_refused(address: str) -> None:
    with pytest.raises(BadRemote):
        check_address(address, EVERYTHING)


@pytest.mark.parametrize(
    ("address", "protocol", "origin"),
    [
        ("https://example.org/team/h.git", "https", "https://example.org"),
        ("https://example.org:8443/h.git", "https", "https://example.org:8443"),
        ("http://[::1]:8000/h.git", "http", "http://[::1]:8000"),
        ("ssh://git@example.org:22/h.git", "ssh", "ssh://example.org:22"),
        ("git@example.org:team/h.git", "ssh", ""),
        ("file:///srv/h.git", "file", ""),
        ("/srv/h.git", "file", ""),
    ],
)
def test_an_ordinary_address_is_read(address: str, protocol: str, origin: str) -> None:
    found = check_address(address, EVERYTHING)
    assert (found.text, found.protocol, found.origin) == (address, protocol, origin)


@pytest.mark.parametrize("address", ["https://h/x", "ssh://h/x", "git@h:x", "http://h/x"])
def test_only_what_the_operator_allows_is_taken(address: str) -> None:
    with pytest.raises(BadRemote, match="not allowed"):
        check_address(address, RemotePolicy())


def test_a_token_is_not_sent_where_it_can_be_read() -> None:
    policy = RemotePolicy(protocols=("http",), token="t0p-secret")
    assert check_address("http://127.0.0.1:1/x", policy).origin == "http://127.0.0.1:1"
    with pytest.raises(BadRemote) as caught:
        check_address("http://example.org/x", policy)
    assert "t0p-secret" not in str(caught.value) + repr(policy)


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(BadRemote) as caught:
        check_address("https://me:hunter2@example.org/x", EVERYTHING)
    assert "hunter2" not in str(caught.value)


def test_a_protocol_that_nobody_knows_is_no_policy() -> None:
    with pytest.raises(BadRemote):
        RemotePolicy(protocols=("ext",))


@given(
    st.text(alphabet=st.sampled_from("abh:/@-[]. ?#\n%x"), max_size=16).map(
        lambda text: text.replace("ab", "ext::")
    )
)
def test_whatever_is_let_through_is_no_option_and_no_helper(address: str) -> None:
    try:
        found = check_address(address, EVERYTHING)
    except BadRemote:
        return
    assert not found.text.startswith("-")
    assert "::" not in found.text.split("/")[0]
    assert found.protocol in PROTOCOLS


@pytest.mark.parametrize(
    "address",
    [
        "https://u:S3CR/ET@h/x", "https://u:p@S3CRET@h/x", "https://h/x?private_token=S3CRET", "https://h/x#S3CRET",
        "S3CRET:x@h:p q", "https://S3CRET@h/x", "ftp://u:S3/CRET@h/x", "S3CRET://h/x", "ftp://S3CRET/x", "ext::S3CRET",
        "https://S3CRET:x@y/", "https://h:S3CRET/x", "ssh://S3CRET@-h/x", "S3CRET@-h:x", "-S3CRET", "https://[S3CRET/x",
        "file://S3CRET@h/x",
    ],
)  # fmt: skip
def test_no_message_repeats_a_secret(address: str) -> None:
    for policy in (RemotePolicy(protocols=("https", "ssh")), RemotePolicy(protocols=("http",), token="t")):
        with pytest.raises(BadRemote) as caught:
            check_address(address, policy)
        assert "CR" not in str(caught.value)
        assert "ET" not in str(caught.value)


def test_a_message_names_the_protocol_and_the_host() -> None:
    with pytest.raises(BadRemote, match=r"^https is not allowed for https://example\.org;"):
        check_address("https://example.org/team/h.git", RemotePolicy())
