import pytest
from hypothesis import given

from harness_repo.format.adoption import CannotAdopt, propose_harness, usable_name
from harness_repo.format.harness import read_harness
from harness_repo.format.skillpaths import parent_folder
from harness_repo.runtime.prompt import assemble_prompt
from harness_repo.snapshot import Snapshot
from tests.harness_repo.format.test_messes import snapshots
from tests.harness_repo.messes import GOOD, skill

FOREIGN = {
    "README.md": b"Skills.\n",
    "one/SKILL.md": skill("one"),
    "plugins/p/skills/two/SKILL.md": skill("two"),
    ".claude/skills/good/SKILL.md": GOOD,
}


def test_a_foreign_repository_becomes_a_harness_without_errors() -> None:
    proposed = propose_harness(Snapshot(FOREIGN), "team skills")
    harness = read_harness({**FOREIGN, **proposed})
    assert harness.problems == []
    assert (harness.name, harness.kind, sorted(harness.skills)) == (
        "team-skills",
        "agent",
        ["good", "one", "two"],
    )
    assert harness.skill_folders == (".", ".claude/skills", "plugins/p/skills")


def test_the_proposed_prompt_shows_the_skills_and_the_request() -> None:
    harness = read_harness({**FOREIGN, **propose_harness(Snapshot(FOREIGN), "x")})
    variables = {"danmaku": [{"user": "u", "text": "How much?"}], "history": [{"role": "u", "content": "Hi"}]}
    system, user = assemble_prompt(harness, variables)
    assert "- two: About two." in str(system["content"])
    assert str(user["content"]).splitlines() == ["## Before", "- u: Hi", "## Now", "- u: How much?"]


def test_chinese_skills_get_a_chinese_prompt() -> None:
    files = {"a/SKILL.md": "---\nname: a\ndescription: 库存问答\n---\n正文\n".encode()}
    assert "技能目录" in propose_harness(Snapshot(files), "x")["prompts/skills.md"].decode()


def test_nothing_that_is_there_is_replaced() -> None:
    files = {**FOREIGN, "prompts/Role.md": b"theirs", "prompts/skills.md": b"theirs"}
    proposed = propose_harness(Snapshot(files, links={"prompts/request.md": "x"}), "x")
    assert set(proposed) == {
        "harness.yaml", "prompts/role-2.md", "prompts/skills-2.md", "prompts/request-2.md",
    }  # fmt: skip


@pytest.mark.parametrize(
    "snapshot",
    [
        Snapshot({"harness.yaml": b""}),
        Snapshot({"harness.yaml/a": b""}),
        Snapshot({"prompts": b""}),
        Snapshot({}, links={"harness.yaml": "x"}),
        Snapshot({}, submodules={"prompts": "0" * 40}),
        Snapshot({}, skipped={"harness.yaml": "a socket"}),
    ],
)
def test_what_stands_in_the_way_is_refused(snapshot: Snapshot) -> None:
    with pytest.raises(CannotAdopt):
        propose_harness(snapshot, "x")


@pytest.mark.parametrize(
    ("text", "name"),
    [("a b/c", "a-b-c"), ("商品", "harness"), ("-x-", "x"), ("", "harness"), ("x" * 99, "x" * 64)],
)
def test_a_name_is_brought_into_shape(text: str, name: str) -> None:
    assert usable_name(text) == name


@given(snapshots)
def test_what_is_proposed_has_no_errors_and_keeps_the_skills(snapshot: Snapshot) -> None:
    try:
        proposed = propose_harness(snapshot, "x")
    except CannotAdopt:
        return
    before = read_harness(snapshot)
    after = read_harness(
        Snapshot(
            {**snapshot.files, **proposed}, snapshot.links, snapshot.submodules, skipped=snapshot.skipped
        )
    )
    # A folder Prompts of theirs clashes with ours, and is theirs to rename.
    assert [p for p in after.problems if p.path in proposed and p.is_error and p.code != "case_clash"] == []
    for name, kept in before.skills.items():
        folder = parent_folder(kept.folder)
        assert name in after.skills or not folder.isprintable() or "\\" in folder
