import os
from pathlib import Path

import pytest
from django.test import Client

from evolution.actions.harnesses import import_harness
from evolution.loop.authors import author_of
from evolution.loop.repositories import open_repository
from evolution.models import Harness
from tests.evolution.measured import DEV
from tests.harness_repo import messes
from tests.workbench.views.conftest import World


def test_a_file_of_a_version_is_shown(world: World, viewer: Client) -> None:
    address = world.url(f"files/?ref={world.proposal.head_commit}&path=prompts/role.md")

    assert "knows: q1 q2 q3" in viewer.get(address).content.decode()


def test_problems_of_a_version_are_listed(world: World, viewer: Client) -> None:
    repository = open_repository(world.harness)
    main = repository.resolve("main")
    edits = {"hooks/bad.yaml": b"name: [\n"}
    commit = repository.commit("broken", edits, parent=main, author=author_of(DEV), message="break it")

    problems = viewer.get(world.url(f"files/?ref={commit}")).context["problems"]

    assert [problem.path for problem in problems] == ["hooks/bad.yaml"]


def test_a_version_that_is_none_is_an_error_message(world: World, viewer: Client) -> None:
    for ref in ("nowhere", "--help", "../x"):
        answer = viewer.get(world.url("files/"), {"ref": ref})
        assert [message.level_tag for message in answer.context["messages"]] == ["error"]


@pytest.fixture
def foreign(db: None, tmp_path: Path) -> Harness:
    """A harness that is another team's agent: no harness.yaml, links, submodules, and one of each mess."""
    messes.write_files(tmp_path, {"0.bin": b"a\0b", os.fsdecode(b"\xff.md"): b"x", "1.md": b"x\n" * 400_000})
    messes.commit_messes(tmp_path)
    return import_harness(DEV, "theirs", "agent", tmp_path)


def test_a_repository_without_harness_yaml_has_a_page(foreign: Harness, viewer: Client) -> None:
    answer = viewer.get("/h/theirs/files/")
    problems = {(p.path, p.code, p.line) for p in answer.context["problems"]}
    assert answer.status_code == 200
    assert problems > messes.EXPECTED_COMMITTED
    assert answer.context["problems"][0].is_error
    assert answer.context["path"] == ".gitmodules"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("skills/absolute", "A symbolic link, which is not followed. It leads to"),
        ("vendor/lost", f'<span class="mono wrap">{"2" * 40}</span>'),
        ("0.bin", "3 bytes that are no text"),
        ("1.md", "781.2 KB that are no text"),
        ("\ufffd.md", '<td class="code">x</td>'),
        ("skills/nothing", "There is no such file in this version."),
    ],
)
def test_whatever_stands_in_a_repository_is_told(
    foreign: Harness, viewer: Client, path: str, said: str
) -> None:
    text = viewer.get("/h/theirs/files/", {"path": path}).content.decode()
    assert said in text.replace("\xa0", " ")
