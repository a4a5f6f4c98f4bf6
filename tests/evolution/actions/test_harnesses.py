from pathlib import Path

import pytest
from django.conf import settings

from evolution.actions.harnesses import create_harness, ensure_starter, import_harness
from evolution.actors import NotAllowed
from evolution.errors import BrokenInput, LoopError
from evolution.loop.repositories import open_repository
from evolution.models import Event, Harness, Release
from harness_repo.folder import read_source
from harness_repo.format.adoption import propose_harness
from harness_repo.format.harness import read_harness
from harness_repo.git.errors import HarnessRepoError
from harness_repo.starters import starter_files
from tests.evolution.measured import ANNA, DEV, VIEWER
from tests.harness_repo import messes
from tests.harness_repo.build import run_git

pytestmark = pytest.mark.django_db
FILES = starter_files("judge")


def test_a_harness_is_a_repository_with_a_first_release() -> None:
    harness = create_harness(ANNA, "mine", "judge", FILES)
    repository = open_repository(harness)
    release = Release.objects.get()
    assert repository.files("main") == FILES
    assert repository.list_tags() == {"release/1": release.commit}
    assert repository.log("main")[0].author == "anna"
    assert Event.objects.get().verb == "harness.created"


def test_a_starter_comes_with_its_judge_and_only_once() -> None:
    first, second = ensure_starter(DEV, "live_commerce"), ensure_starter(DEV, "live_commerce")
    assert first == second
    assert first.judge is not None
    assert (first.judge.name, Harness.objects.count()) == ("judge", 2)


def test_a_folder_left_of_a_rolled_back_harness_is_not_taken() -> None:
    Path(settings.REPOSITORIES_DIR, "left.git").mkdir(parents=True)
    assert create_harness(DEV, "left", "judge", FILES).path != "left.git"


@pytest.mark.parametrize("name", ["", "-x", "Shop", "a/b", "../a", "x" * 65])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(LoopError):
        create_harness(DEV, name, "judge", FILES)


def test_a_name_is_taken_once() -> None:
    create_harness(DEV, "mine", "judge", FILES)
    with pytest.raises(LoopError, match="already"):
        create_harness(DEV, "mine", "judge", FILES)


def test_files_without_a_harness_yaml_are_refused() -> None:
    with pytest.raises(BrokenInput, match=r"no harness\.yaml"):
        create_harness(DEV, "mine", "agent", {"a": b"b"})
    with pytest.raises(NotAllowed):
        create_harness(VIEWER, "mine", "judge", FILES)


def test_a_name_that_nobody_knows_says_what_there_is() -> None:
    create_harness(DEV, "mine", "judge", FILES)
    with pytest.raises(LoopError, match="known: mine"):
        ensure_starter(DEV, "yours")


def test_a_repository_is_taken_in_with_its_history(tmp_path: Path) -> None:
    source = make_source(tmp_path, FILES)
    harness = import_harness(DEV, "theirs", "judge", source)
    repository = open_repository(harness)
    assert repository.resolve("main") == head_of(source)
    assert [entry.message for entry in repository.log("main")] == ["second", "first"]
    assert Release.objects.get().commit == head_of(source)


def test_an_older_commit_of_a_repository_can_become_main(tmp_path: Path) -> None:
    source = make_source(tmp_path, FILES)
    run_git(source / ".git", "tag", "v1", "HEAD~1")
    harness = import_harness(DEV, "theirs", "judge", source, ref="v1")
    assert [entry.message for entry in open_repository(harness).log("main")] == ["first"]


def test_what_makes_a_harness_is_one_more_commit_by_the_actor(tmp_path: Path) -> None:
    source = make_source(tmp_path, {"a/SKILL.md": messes.skill("a")})
    additions = propose_harness(read_source(source).snapshot, "theirs")
    harness = import_harness(ANNA, "theirs", "agent", source, additions=additions)
    repository = open_repository(harness)
    newest = repository.log("main")[0]
    assert (newest.author, newest.parents) == ("anna", (head_of(source),))
    assert read_harness(repository.snapshot("main")).problems == []
    assert Release.objects.get().commit == newest.sha


def test_a_repository_that_is_none_leaves_no_harness(tmp_path: Path) -> None:
    with pytest.raises(HarnessRepoError):
        import_harness(DEV, "theirs", "agent", tmp_path)
    with pytest.raises(NotAllowed):
        import_harness(VIEWER, "theirs", "agent", tmp_path)
    assert not Harness.objects.exists()


def make_source(folder: Path, files: dict[str, bytes]) -> Path:
    """A repository with two commits and a working tree."""
    messes.write_files(folder, files)
    messes.run_git_in(folder, "init", "--quiet", "--initial-branch=trunk")
    for message in ("first", "second"):
        (folder / "NEWS").write_text(message)
        messes.run_git_in(folder, "add", "--all")
        messes.run_git_in(folder, "commit", "--quiet", "--message", message)
    return folder


def head_of(source: Path) -> str:
    return run_git(source / ".git", "rev-parse", "HEAD").decode().strip()
