from django.test import Client

from evolution.loop.authors import author_of
from evolution.loop.repositories import open_repository
from tests.evolution.measured import DEV
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
