import pytest
from hypothesis import example, given

from harness_repo.format.adoption import MOST_SKILL_FOLDERS, CannotAdopt, propose_harness, usable_name
from harness_repo.format.harness import Harness, read_harness
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
        Snapshot({"Prompts/x.md": b""}),
        Snapshot({"Harness.yaml": b""}),
        Snapshot({}, links={"PROMPTS": "x"}),
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


# A folder that cannot be listed, with a file of almost the name of a skill's.
@example(Snapshot({"\x1f/skills/skill.md": b"---\ndescription: d"}))
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
    assert errors(after) - errors(before) == set()
    # What cannot be listed is told.
    told = {problem.path for problem in after.problems if problem.code in {"skill_outside", "skill_nested"}}
    for name, kept in before.skills.items():
        assert name in after.skills or kept.path in told


def errors(harness: Harness) -> set[tuple[str, str]]:
    return {(problem.path, problem.code) for problem in harness.problems if problem.is_error}


@pytest.mark.parametrize("folder", ["a\\b", "a\nb", "\u200e", "\udcff"])
def test_a_skill_whose_folder_cannot_be_listed_is_told(folder: str) -> None:
    path = f"{folder}/lost/SKILL.md"
    files = {**FOREIGN, path: skill("lost")}
    harness = read_harness({**files, **propose_harness(Snapshot(files), "x")})
    assert sorted(harness.skills) == ["good", "one", "two"]
    told = [problem for problem in harness.problems if problem.code in {"skill_outside", "skill_nested"}]
    assert [(problem.path, "rename" in problem.hint) for problem in told] == [(path, True)]


@pytest.mark.parametrize("files", [
    {f"f{number}/a/SKILL.md": skill(f"a{number}") for number in range(MOST_SKILL_FOLDERS + 1)},
    {f"{'x' * 200}/{'y' * 200}/{number}/a/SKILL.md": skill(f"a{number}") for number in range(200)},
])  # fmt: skip
def test_more_folders_than_can_be_listed_are_refused(files: dict[str, bytes]) -> None:
    with pytest.raises(CannotAdopt, match="move them into fewer"):
        propose_harness(Snapshot(files), "x")


def test_as_many_folders_as_can_be_listed_are_taken() -> None:
    files = {f"f{number}/a{number}/SKILL.md": skill(f"a{number}") for number in range(MOST_SKILL_FOLDERS)}
    harness = read_harness({**files, **propose_harness(Snapshot(files), "x")})
    assert (len(harness.skills), harness.problems) == (MOST_SKILL_FOLDERS, [])


def test_a_page_about_skills_is_no_skill_after_adoption_either() -> None:
    files = {**FOREIGN, "docs/skill.md": b"# About skills\n"}
    harness = read_harness({**files, **propose_harness(Snapshot(files), "x")})
    assert errors(harness) == set()
    assert sorted(harness.skills) == ["good", "one", "two"]


def test_the_material_of_a_skill_stays_material() -> None:
    files = {
        "with-scripts/SKILL.md": skill("with-scripts"),
        "with-scripts/assets/SKILL.md": skill("assets"),
        "with-scripts/deep/SKILL.md": skill("deep"),
        "with-scripts/assets/a/references/b/SKILL.md": skill("b"),
    }
    harness = read_harness({**files, **propose_harness(Snapshot(files), "x")})
    said = {problem.path: problem.message for problem in harness.problems}
    assert (sorted(harness.skills), harness.skill_folders) == (
        ["deep", "with-scripts"],
        (".", "with-scripts"),
    )
    for path in ("with-scripts/assets/SKILL.md", "with-scripts/assets/a/references/b/SKILL.md"):
        assert (
            said[path] == "the skill stands inside the skill with-scripts, is material of it, and is not read"
        )


VENDORED = {
    "skills/mine/SKILL.md": skill("mine"),
    "skills/build/SKILL.md": skill("build"),
    "node_modules/SKILL.md": skill("a"),
    "node_modules/lib/b/SKILL.md": skill("b"),
    ".venv/lib/site-packages/c/SKILL.md": skill("c"),
    "third_party/d/SKILL.md": skill("d"),
    "app/dist/e/SKILL.md": skill("e"),
}


def test_packages_of_others_are_left_out_and_said() -> None:
    proposed = propose_harness(Snapshot(VENDORED), "x")
    harness = read_harness({**VENDORED, **proposed})
    said = {problem.message.split(",")[0] for problem in harness.problems if problem.code == "skill_vendored"}
    assert (sorted(harness.skills), harness.skill_folders) == (["build", "mine"], ("skills",))
    assert said == {
        "2 skills stand in node_modules",
        "a skill stands in .venv",
        "a skill stands in third_party",
        "a skill stands in app/dist",
    }
    assert len(harness.problems) == 4


def test_packages_that_are_listed_are_read() -> None:
    config = b"format: 1\nname: x\nskill_folders: [vendor]\nprompt: []\nreply_skill_required: false\n"
    assert list(read_harness({"harness.yaml": config, "vendor/a/SKILL.md": skill("a")}).skills) == ["a"]
