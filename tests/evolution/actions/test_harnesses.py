from pathlib import Path

import pytest
from django.conf import settings

from evolution.actions.harnesses import create_harness, ensure_starter, read_folder
from evolution.actors import NotAllowed
from evolution.errors import BrokenInput, LoopError
from evolution.loop.repositories import open_repository
from evolution.models import Event, Harness, Release
from harness_repo.starters import starter_files
from tests.evolution.measured import ANNA, DEV, VIEWER

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


def test_hidden_files_and_links_of_a_folder_are_left_out(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("secret")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "a.md").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert read_folder(tmp_path) == {"skills/a.md": b"x"}
