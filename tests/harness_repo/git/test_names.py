import contextlib
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_repo.git.errors import BadPath, BadRef, StaleBase
from harness_repo.git.names import check_new_ref_name, check_path, check_ref_name
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import run_git

BAD_PATHS = [
    "", "-x", "/abs", "..", "a/../b", "./a", "a//b", "a/", ".git/config", "a/.GIT/hooks/x", "git~1/x",
    ".git. /x", ".g\u200cit/config", ".git::$INDEX_ALLOCATION/x", "a\0b", "a\\b", "a\nb", "x" * 2000,
]  # fmt: skip
BAD_REFS = [
    "", "-x", "a/-x", "--upload-pack=x", "..", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b",
    "a\0b", "a\nb", "a/", "/a", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "@", "a@{1}", "x" * 300,
]  # fmt: skip


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_hostile_path_is_refused_and_nothing_is_written(
    repo: HarnessRepository, author: Author, path: str
) -> None:
    with pytest.raises(BadPath):
        repo.commit("b", {"fine": b"1", path: b"x"}, parent="main", author=author, message="m")
    with pytest.raises(BadPath):
        repo.read_file("main", path)
    assert list(repo.branches()) == ["main"]


@pytest.mark.parametrize("name", BAD_REFS)
def test_a_hostile_ref_is_refused_everywhere(repo: HarnessRepository, author: Author, name: str) -> None:
    with pytest.raises(BadRef):
        repo.resolve(name)
    with pytest.raises(BadRef):
        repo.commit(name, {"a": b"1"}, parent="main", author=author, message="m")
    with pytest.raises(BadRef):
        repo.tag(name, "main", "m", author)


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/x", "a" * 40])
def test_a_name_that_reads_as_something_else_cannot_be_created(name: str) -> None:
    with pytest.raises(BadRef):
        check_new_ref_name(name)


@given(st.text(alphabet=st.sampled_from("ab./-@{}~^: \\*?[\x7f好"), max_size=12))
def test_git_accepts_every_name_that_is_let_through(name: str) -> None:
    try:
        check_ref_name(name)
    except BadRef:
        return
    command = ["git", "check-ref-format", f"refs/heads/{name}"]
    assert subprocess.run(command, check=False).returncode == 0


@pytest.mark.parametrize("path", ["harness.yaml", "skills/中文 名/SKILL.md", ".gitignore", "a/.b", "x-y/..z"])
def test_an_ordinary_path_is_let_through(path: str) -> None:
    assert check_path(path) == path


@given(st.text(max_size=40))
def test_any_text_is_a_name_and_a_path_or_a_typed_error(text: str) -> None:
    for check, refusal in ((check_new_ref_name, BadRef), (check_path, BadPath)):
        with contextlib.suppress(refusal):
            assert check(text).encode("utf-8", "surrogateescape")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(alphabet=st.sampled_from("aA/.-~:\\@{}\0\n \ud800\udc80é\u200c*"), min_size=1, max_size=8),
    st.booleans(),
)
def test_a_hostile_name_or_path_never_damages_a_repository(
    repo: HarnessRepository,
    author: Author,
    text: str,
    is_path: bool,  # noqa: FBT001  hypothesis fills it
) -> None:
    branch, path = ("b", text) if is_path else (text, "f")
    with contextlib.suppress(BadRef, BadPath, StaleBase):
        repo.commit(branch, {path: b"x"}, parent="main", author=author, message="m")
    assert "main" in repo.branches()
    assert not [name for name in repo.path.parent.iterdir() if name != repo.path]


@pytest.mark.parametrize("sign", ["\x85", "\x9b", "\u2028", "\u2029", "\u202e", "\u2066"])
def test_a_new_name_has_no_signs_that_nobody_sees(repo: HarnessRepository, author: Author, sign: str) -> None:
    with pytest.raises(BadRef):
        repo.commit(f"x{sign}y", {"a": b"1"}, parent="main", author=author, message="m")
    # One that somebody else's git has made harms nobody.
    run_git(repo.path, "update-ref", f"refs/heads/x{sign}y", "main")
    assert set(repo.branches()) == {"main", f"x{sign}y"}
