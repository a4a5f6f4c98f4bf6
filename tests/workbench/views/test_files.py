import os
from pathlib import Path

import pytest
from django.test import Client

from evolution.actions.harnesses import import_harness
from evolution.loop.authors import author_of
from evolution.loop.repositories import open_repository
from evolution.models import Harness
from tests.evolution.measured import DEV, make_proposal
from tests.harness_repo import messes
from tests.workbench.views.conftest import World


def test_a_file_of_a_version_is_shown(world: World, viewer: Client) -> None:
    address = world.url(f"files/?ref={world.proposal.head_commit}&path=prompts/role.md")

    assert "knows: q1 q2 q3" in viewer.get(address).content.decode()


def test_a_branch_that_came_with_an_import_is_shown_by_its_name(
    viewer: Client, tmp_path: Path, db: None
) -> None:
    messes.write_files(tmp_path, {"harness.yaml": b"name: theirs\n"})
    messes.commit_messes(tmp_path)
    messes.run_git_in(tmp_path, "checkout", "--quiet", "-b", "feature/x")
    messes.run_git_in(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "on the side")
    messes.run_git_in(tmp_path, "checkout", "--quiet", "-")
    import_harness(DEV, "theirs", "agent", tmp_path)

    log = viewer.get("/h/theirs/files/", {"ref": "origin/feature/x"}).context["log"]

    assert log[0].subject == "on the side"


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
        assert "To the live version" in answer.content.decode()


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
        ("0.bin", "3 bytes of binary data, which is not shown."),
        (
            "1.md",
            "781.2 KB: too large to be read as part of a harness, and to be shown. A file has 512.0 KB at most.",
        ),
        ("\ufffd.md", '<td class="code">x</td>'),
        ("skills/nothing", "There is no such file in this version."),
    ],
)
def test_whatever_stands_in_a_repository_is_told(
    foreign: Harness, viewer: Client, path: str, said: str
) -> None:
    text = viewer.get("/h/theirs/files/", {"path": path}).content.decode()
    assert said in text.replace("\xa0", " ")


def test_a_long_file_is_shown_in_parts(world: World, viewer: Client) -> None:
    lines = "".join(f"line {number} of it\n" for number in range(1, 2_501)).encode()
    proposal = make_proposal(world.harness, lines, path="prompts/long.md")
    address = world.url(f"files/?ref={proposal.head_commit}&path=prompts/long.md")

    first, middle = viewer.get(address), viewer.get(f"{address}&line=1700")

    assert [number for number, _line in middle.context["lines"]] == list(range(1001, 2001))
    assert (first.context["previous_line"], first.context["next_line"]) == (None, 1001)
    assert (middle.context["previous_line"], middle.context["next_line"]) == (1, 2001)
    assert viewer.get(f"{address}&line={'9' * 18}").context["last_line"] == 2500


@pytest.mark.parametrize(
    ("data", "lines"),
    [(b"", []), (b"a", ["a"]), (b"a\r\nb\n", ["a", "b"]), (b"a\n\n", ["a", ""]),
     ("a\u2028b\x0cc\n".encode(), ["a\u2028b\x0cc"])],
)  # fmt: skip
def test_lines_are_counted_as_git_counts_them(
    world: World, viewer: Client, data: bytes, lines: list[str]
) -> None:
    proposal = make_proposal(world.harness, data, path="prompts/odd.md")
    answer = viewer.get(world.url(f"files/?ref={proposal.head_commit}&path=prompts/odd.md"))

    assert [line for _number, line in answer.context["lines"]] == lines


@pytest.mark.parametrize(
    ("data", "lines", "said"),
    [
        ("你好\nb\n".encode("utf-16"), ["你好", "b"], "UTF-16 or UTF-32, shown decoded."),
        (b"caf\xe9\n", ["caf\ufffd"], "Bytes that are no UTF-8 are shown as"),
    ],
)
def test_text_that_is_no_utf8_is_shown_with_a_note(
    world: World, viewer: Client, data: bytes, lines: list[str], said: str
) -> None:
    proposal = make_proposal(world.harness, data, path="prompts/odd.md")
    answer = viewer.get(world.url(f"files/?ref={proposal.head_commit}&path=prompts/odd.md"))

    assert [line for _number, line in answer.context["lines"]] == lines
    assert said in answer.content.decode()


def test_a_large_tree_is_folded_but_for_the_folder_one_is_in(world: World, viewer: Client) -> None:
    repository = open_repository(world.harness)
    edits = {f"skills/s{n}/SKILL.md": b"x" for n in range(100)}
    main = repository.resolve("main")
    commit = repository.commit("many", edits, parent=main, author=author_of(DEV), message="m")
    answer = viewer.get(world.url(f"files/?ref={commit}&path=prompts/role.md"))

    assert {group.name: group.is_open for group in answer.context["groups"]} == {
        "": False, "prompts": True, "skills": False,
    }  # fmt: skip
    # One for each, or more: seen at once are a few.
    assert answer.context["problem_count"] >= 100
    assert answer.content.decode().count("&amp;path=skills/s99/SKILL.md") >= 2
    assert len(answer.context["first_problems"]) == 8


def test_the_agent_is_named_and_how_to_change_it(world: World, viewer: Client) -> None:
    page = viewer.get(world.url("files/")).content.decode()

    assert "the workbench&#x27;s runtime" in page or "the workbench's runtime" in page
    assert "manage.py set_runner shop --command" in page
