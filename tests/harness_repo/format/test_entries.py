import pytest

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
