from unittest.mock import Mock

import pytest

from harness_repo.format import links as links_module
from harness_repo.format.entries import entry_problems
from harness_repo.snapshot import Snapshot


def found(snapshot: Snapshot) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in entry_problems(snapshot)]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("b", "link_not_followed"),
        ("./b/", "link_not_followed"),
        ("../a/b", "link_not_followed"),
        ("..", "link_not_followed"),
        ("second", "link_not_followed"),
        ("../sub/inside", "link_not_followed"),
        ("nothing", "link_dangling"),
        ("", "link_dangling"),
        ("link", "link_dangling"),
        ("../..", "link_outside"),
        ("../../b", "link_outside"),
        ("up/../../x", "link_outside"),
        ("/etc/passwd", "link_outside"),
        ("\\\\server\\share", "link_outside"),
        ("C:\\Windows", "link_outside"),
        ("away/x", "link_outside"),
    ],
)
def test_where_a_link_leads_is_told(target: str, code: str) -> None:
    links = {"a/link": target, "a/second": "b", "a/up": "..", "a/away": "../.."}
    snapshot = Snapshot({"a/b": b""}, links=links, submodules={"sub": "0" * 40})
    assert ("a/link", code) in found(snapshot)


def test_a_submodule_that_nobody_can_fetch_is_an_error() -> None:
    registered = b'[submodule "x"]\r\n  path = "with space"\r\n[submodule "y"]\n\tpath=plain/\n'
    names = {"with space": "0" * 40, "plain": "0" * 40, "lost": "0" * 40}
    assert found(Snapshot({".gitmodules": registered}, submodules=names)) == [
        ("lost", "submodule_unregistered"),
        ("plain", "submodule"),
        ("with space", "submodule"),
    ]


@pytest.mark.parametrize(
    ("paths", "clashing"),
    [
        (["a/B", "a/b"], ["a/b"]),
        (["A/x", "a/y", "a/z"], ["a/y"]),
        (["Straße", "STRASSE"], ["Straße"]),
        (["é", "e\u0301"], ["é"]),
        (["a", "b/a", "b/c"], []),
    ],
)
def test_names_that_some_systems_take_for_one_are_told_once(paths: list[str], clashing: list[str]) -> None:
    snapshot = Snapshot(dict.fromkeys(paths, b""))
    assert found(snapshot) == [(path, "case_clash") for path in clashing]


@pytest.mark.parametrize("path", ["a\\b", "\udcff", "a\nb", "a/../b", ".GIT/x", "a\u202eb"])
def test_names_that_do_not_travel_are_errors(path: str) -> None:
    assert found(Snapshot({path: b""})) == [(path, "path_name")]


def test_what_was_not_read_is_told_with_its_reason() -> None:
    (problem,) = entry_problems(Snapshot({}, skipped={"pipe": "it is a pipe"}))
    assert (problem.path, problem.code, problem.message) == (
        "pipe",
        "unreadable",
        "it is not read: it is a pipe",
    )


def chain(length: int) -> dict[str, str]:
    """Links of which each leads to the next one, through folders, and the last one to a file."""
    return {f"x{number}": f"d/../x{number + 1}" for number in range(length - 1)} | {f"x{length - 1}": "file"}


@pytest.mark.parametrize(("length", "dangling"), [(10, 0), (11, 1), (30, 20)])
def test_a_link_that_leads_through_more_than_ten_links_leads_nowhere(length: int, dangling: int) -> None:
    codes = [code for _, code in found(Snapshot({"file": b""}, links=chain(length)))]
    assert (codes.count("link_dangling"), codes.count("link_not_followed")) == (dangling, length - dangling)


@pytest.mark.parametrize(
    ("links", "code"),
    [
        ({"a": "b", "b": "c", "c": "a"}, "link_dangling"),
        ({"a": "a/x", "b": "a", "c": "b/../x"}, "link_dangling"),
        ({"a": "d/file", "b": "a", "c": "e/../b", "e": "d"}, "link_not_followed"),
        ({"a": "e/file", "e": "f/../d", "f": "d"}, "link_not_followed"),
        ({"d/a": "../e/up/d/file", "e": ".", "up": "d/.."}, "link_not_followed"),
        ({"a": "e/x", "e": "../x"}, "link_outside"),
        ({"a": "x" * 2000}, "link_dangling"),
    ],
)
def test_links_through_links_lead_where_the_last_one_does(links: dict[str, str], code: str) -> None:
    problems = found(Snapshot({"d/file": b""}, links=links))
    assert {told for path, told in problems if path != "up"} == {code}


def test_each_link_is_walked_once_however_many_lead_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    walked = Mock(wraps=links_module._walk)
    monkeypatch.setattr(links_module, "_walk", walked)
    links = chain(100) | {f"y{number}": "x0" for number in range(100)}
    found(Snapshot({"file": b""}, links=links, submodules={f"s{number}": "0" * 40 for number in range(100)}))
    assert sorted(call.args[0] for call in walked.call_args_list) == sorted(links)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a/B", "a/b"), "'a/b' and 'a/B' differ in nothing but case"),
        (
            ("e\u0301", "\xe9"),
            r"'\xe9' and 'e\u0301' differ in nothing but how an accent is written (Unicode NFC and NFD)",
        ),
        (
            ("E\u0301", "\xe9"),
            r"'\xe9' and 'E\u0301' differ in nothing but case and how an accent is written",
        ),
    ],
)
def test_a_clash_says_in_what_the_names_differ(names: tuple[str, str], said: str) -> None:
    [problem] = entry_problems(Snapshot(dict.fromkeys(names, b"")))
    assert problem.message.startswith(said)
