import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evolution.loop.repositories import open_repository, read_version
from evolution.models import Harness
from harness_repo.starters import starter_files
from tests.harness_repo import messes

pytestmark = pytest.mark.django_db
SKILLS = {"a/one/SKILL.md": messes.skill("one"), "src/main.py": b"print()\n"}


def add(*arguments: str) -> tuple[Harness, str]:
    told = StringIO()
    call_command("add_harness", "mine", *arguments, stdout=StringIO(), stderr=told)
    return Harness.objects.get(name="mine"), told.getvalue()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    messes.write_files(tmp_path, SKILLS)
    messes.run_git_in(tmp_path, "init", "--quiet", "--initial-branch=trunk")
    messes.run_git_in(tmp_path, "add", "--all")
    messes.run_git_in(tmp_path, "commit", "--quiet", "--message", "theirs")
    return tmp_path


def messages(harness: Harness) -> list[str]:
    return [entry.message for entry in open_repository(harness).log("main")]


def test_a_folder_becomes_a_first_version(tmp_path: Path) -> None:
    messes.write_files(tmp_path, starter_files("judge"))
    harness, told = add("--from", str(tmp_path))
    assert (harness.kind, told) == ("judge", "")
    assert open_repository(harness).files("main") == starter_files("judge")


def test_what_a_folder_loses_is_told(tmp_path: Path) -> None:
    messes.write_files(tmp_path, starter_files("judge"))
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert "link:0: error link_outside" in add("--from", str(tmp_path))[1]


def test_a_foreign_folder_is_adopted(tmp_path: Path) -> None:
    messes.write_files(tmp_path, SKILLS)
    harness, told = add("--from", str(tmp_path), "--adopt")
    version = read_version(harness, open_repository(harness).resolve("main"))
    assert (harness.kind, told, version.name, list(version.skills)) == ("agent", "", "mine", ["one"])


def test_a_foreign_repository_is_adopted_with_its_history(repository: Path) -> None:
    harness, _ = add("--from", str(repository), "--adopt")
    assert messages(harness) == ["Add what makes a harness of it", "theirs"]


def test_what_is_not_committed_is_not_taken_in(repository: Path) -> None:
    messes.write_files(repository, starter_files("judge"))
    with pytest.raises(CommandError, match="--adopt adds one"):
        add("--from", str(repository))


def test_an_agent_of_its_own_is_taken_in_as_it_is(repository: Path) -> None:
    harness, told = add("--from", str(repository), "--as-it-is", "--ref", "trunk")
    assert messages(harness) == ["theirs"]
    assert "there is no harness.yaml" in told
    assert "branches stand on refs/remotes/*, and are shown by their names (origin/trunk)" in told
    assert "refs/source-tags/" not in told


def test_what_else_a_repository_has_is_said_and_can_be_read(repository: Path) -> None:
    messes.run_git_in(repository, "tag", "v1", "trunk")
    harness, told = add("--from", str(repository), "--as-it-is")
    assert "note: its tags stand on refs/source-tags/*, and are shown by their names (v1): 1 in all" in told
    assert open_repository(harness).resolve("v1") == open_repository(harness).resolve("origin/trunk")


@pytest.mark.parametrize(
    "options",
    [[], ["--ref", "main"], ["--adopt", "--ref", "main"], ["--adopt", "--judge", "nobody"]],
)
def test_what_cannot_become_a_harness_is_refused(tmp_path: Path, options: list[str]) -> None:
    messes.write_files(tmp_path, SKILLS)
    with pytest.raises(CommandError):
        add("--from", str(tmp_path), *options)
    assert not Harness.objects.filter(name="mine").exists()


def test_what_is_not_committed_is_told(repository: Path) -> None:
    messes.write_files(repository, {"a/one/SKILL.md": messes.skill("one", body="Changed.")})
    warning = "warning: 1 file differs from HEAD; only what is committed was taken in"
    assert warning in add("--from", str(repository), "--adopt")[1]


def test_a_plain_folder_is_taken_in_as_it_is(tmp_path: Path) -> None:
    messes.write_files(tmp_path, SKILLS)
    harness, told = add("--from", str(tmp_path), "--as-it-is")
    assert open_repository(harness).files("main") == SKILLS
    assert "there is no harness.yaml" in told


def test_problems_are_sorted_and_counted_as_check_harness_does(tmp_path: Path) -> None:
    mess = {"tools/b.yaml": b"[]", "hooks/a.yaml": b"[]", "prompts/more.md": b"x"}
    messes.write_files(tmp_path, {**starter_files("judge"), **mess})
    told, out, checked = StringIO(), StringIO(), StringIO()
    call_command("add_harness", "mine", "--from", str(tmp_path), stdout=out, stderr=told)
    with pytest.raises(SystemExit):
        call_command("check_harness", str(tmp_path), stdout=checked)
    lines = checked.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == ["hooks/a.yaml", "prompts/more.md", "tools/b.yaml"]
    assert [*told.getvalue().splitlines(), out.getvalue().splitlines()[0]] == lines


def test_an_object_says_what_was_made_or_why_not(tmp_path: Path) -> None:
    messes.write_files(tmp_path, starter_files("judge"))
    for code, keys in ((0, {"harness", "path", "problems", "errors"}), (1, {"error"})):
        out = StringIO()
        try:
            call_command("add_harness", "mine", "--from", str(tmp_path), "--json", stdout=out)
            found = 0
        except SystemExit as end:
            found = int(str(end.code))
        assert (found, keys - set(json.loads(out.getvalue()))) == (code, set())
