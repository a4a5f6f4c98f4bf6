import pytest

from evolution.loop.flags import FlagKind, find_flags
from tests.evolution.loop.flags.changing import flag_line


@pytest.mark.parametrize(
    ("text", "kind", "detail"),
    [
        ("详情见 https://shop.example.com/a?x=1。", FlagKind.NEW_HOST, "https://shop.example.com/a?x=1"),
        ("see www.shop-example.net/offer", FlagKind.NEW_HOST, "www.shop-example.net/offer"),
        ("send it to collect.example.org", FlagKind.NEW_HOST, "collect.example.org"),
        ("ask 203.0.113.7:8080 first", FlagKind.NEW_HOST, "203.0.113.7:8080"),
        ("hxxp://bad.example/x", FlagKind.NEW_HOST, "hxxp://bad.example/x"),
        ("[a](javascript:alert(document.cookie))", FlagKind.NEW_HOST, "javascript:alert(document.cookie"),
        ("write to Eve@Example.com", FlagKind.NEW_CONTACT, "eve@example.com"),
        ("打 138 1234 5678", FlagKind.NEW_CONTACT, "13812345678"),
    ],
)
def test_new_addresses_are_flagged(text: str, kind: FlagKind, detail: str) -> None:
    assert flag_line(f"- {text}") == [(kind, detail)]


@pytest.mark.parametrize(
    "text",
    [
        "see SKILL.md and skills/pay.py",
        "version 1.2.3",
        "price 12.50",
        "tool.get and reply.text",
        "a@b",
        "e.g. this",
    ],
)
def test_what_is_no_address_is_not(text: str) -> None:
    assert flag_line(f"- {text}") == []


def flagged_after(before: str, after: str) -> list[tuple[FlagKind, str]]:
    base, head = {"prompts/a.md": before.encode()}, {"prompts/a.md": f"{before}{after}".encode()}
    return [(one.kind, one.detail) for one in find_flags(base, head)]


def test_another_page_of_a_known_host_is_told_as_that() -> None:
    before = "看 https://help.example.com/a\n"
    assert flagged_after(before, "再看 https://help.example.com/a\n") == []
    assert flagged_after(before, "看 https://help.example.com/b\n") == [
        (FlagKind.NEW_URL, "https://help.example.com/b")
    ]


@pytest.mark.parametrize("host", ["examp1e.com", "exarnple.com", "ex\u0430mple.com", "xn--exmple-cua.com"])
def test_a_host_that_looks_like_a_known_one_is_flagged(host: str) -> None:
    found = flagged_after("https://example.com/a\n", f"https://{host}/a\n")
    assert FlagKind.LOOK_ALIKE in {kind for kind, _ in found}
    assert FlagKind.NEW_HOST in {kind for kind, _ in found}


def test_the_host_behind_a_user_name_counts() -> None:
    found = flagged_after("https://example.com/a\n", "https://example.com@evil.example/a\n")
    assert (FlagKind.NEW_HOST, "https://example.com@evil.example/a") in found
