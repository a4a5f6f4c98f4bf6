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


@pytest.mark.parametrize(
    "options",
    [[], ["--as-it-is"], ["--ref", "main"], ["--adopt", "--ref", "main"], ["--adopt", "--judge", "nobody"]],
)
def test_what_cannot_become_a_harness_is_refused(tmp_path: Path, options: list[str]) -> None:
    messes.write_files(tmp_path, SKILLS)
    with pytest.raises(CommandError):
        add("--from", str(tmp_path), *options)
    assert not Harness.objects.filter(name="mine").exists()
