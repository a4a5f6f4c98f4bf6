import pytest

from harness_repo.format import skillpaths
from harness_repo.format.harness import Harness, is_harness_path, read_harness, skill_folders_of
from harness_repo.format.skillpaths import find_listed_skills
from tests.harness_repo.build import CONFIG, FILES
from tests.harness_repo.messes import skill


def read(files: dict[str, bytes], skill_folders: str = "") -> Harness:
    config = CONFIG + f"skill_folders: {skill_folders}\n".encode() if skill_folders else CONFIG
    return read_harness({**FILES, "harness.yaml": config, **files})


def codes(harness: Harness) -> list[tuple[str, str, int]]:
    return [(problem.path, problem.code, problem.line) for problem in harness.problems]


def test_skills_stand_in_the_listed_folders() -> None:
    files = {"a/x/SKILL.md": skill("x"), ".claude/skills/y/SKILL.md": skill("y"), "z/SKILL.md": skill("z")}
    harness = read(files, "[skills, a, .claude/skills, .]")
    assert codes(harness) == []
    assert sorted(harness.skills) == ["item-qa", "x", "y", "z"]
    assert harness.skill_folders == ("skills", "a", ".claude/skills", ".")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("SKILL.md", "skill_at_root"),
        ("elsewhere/x/SKILL.md", "skill_outside"),
        ("skills/group/x/SKILL.md", "skill_nested"),
        ("skills/item-qa/references/x/SKILL.md", "skill_nested"),
    ],
)
def test_a_skill_anywhere_else_is_told_and_not_read(path: str, code: str) -> None:
    harness = read({path: skill("x")})
    assert codes(harness) == [(path, code, 0)]
    assert "x" not in harness.skills


def test_a_skill_at_the_root_is_read_where_the_root_is_listed() -> None:
    harness = read({"SKILL.md": skill("x")}, "[skills, .]")
    assert codes(harness) == [("SKILL.md", "skill_at_root", 0)]
    assert "x" in harness.skills


def test_a_folder_without_its_skill_file_is_told_once() -> None:
    harness = read({"skills/README.md": b"", "skills/x/a.md": b"", "skills/x/b/c.md": b""})
    assert codes(harness) == [("skills/x/a.md", "skill_file_missing", 0)]


def test_a_listed_folder_in_which_no_skill_stands_is_told_by_line() -> None:
    assert codes(read({}, "[skills, nowhere]")) == [("harness.yaml", "skill_folder_empty", 10)]


@pytest.mark.parametrize(
    "folders", ["[]", "['']", "[/a]", "[../a]", "[a/..]", "[a//b]", "[a/]", "['a\\b']", "[a, a]"]
)
def test_what_can_be_no_skill_folder_is_refused_and_the_default_stays(folders: str) -> None:
    harness = read({}, folders)
    assert {(path, code) for path, code, _ in codes(harness)} == {("harness.yaml", "schema")}
    assert harness.skill_folders == ("skills",)
    assert "item-qa" in harness.skills


def test_what_lies_beside_a_skill_is_its_own() -> None:
    files = {
        "skills/item-qa/scripts/run.py": b"",
        "skills/item-qa/a.md": b"",
        "skills/x/SKILL.md": skill("x"),
    }
    assert read(files).skills["item-qa"].files == ("a.md", "scripts/run.py")
    assert read(files).skills["x"].files == ()


def test_without_harness_yaml_skills_are_found_anywhere() -> None:
    files = {
        "one/SKILL.md": skill("one"),
        "a/b/two/skill.md": skill("two"),
        "docs/skill.md": b"# About skills\n",
        "one/assets/template/SKILL.md": b"template",
    }
    harness = read_harness(files)
    assert sorted(harness.skills) == ["one", "two"]
    assert codes(harness) == [
        ("harness.yaml", "config_missing", 0),
        ("a/b/two/skill.md", "skill_file_name", 0),
        ("one/assets/template/SKILL.md", "skill_nested", 0),
    ]
    assert harness.skill_folders == skill_folders_of(files) == (".", "a/b")


def test_of_two_files_of_almost_the_name_the_right_one_is_read() -> None:
    harness = read_harness({"x/SKILL.md": skill("x"), "x/skill.md": skill("y"), "x/Skill.md": skill("z")})
    assert harness.skills["x"].path == "x/SKILL.md"
    assert [code for _, code, _ in codes(harness)] == ["config_missing", "case_clash", "case_clash"]


@pytest.mark.parametrize(
    ("path", "folders", "belongs"),
    [
        ("skills/x/SKILL.md", ("skills",), True),
        ("a/skills/x/SKILL.md", ("skills",), False),
        ("a/skills/x/y.md", ("a/skills",), True),
        ("skills/x/SKILL.md", ("a/skills",), False),
        ("SKILL.md", (".",), True),
        ("README.md", (".",), False),
        ("known/notes.md", (".",), True),
        ("new/SKILL.md", (".",), True),
        ("source/main.py", (".",), False),
        (".github/workflows/x.yml", (".",), False),
    ],
)
def test_a_path_belongs_to_a_harness_by_its_skill_folders(
    path: str, folders: tuple[str, ...], *, belongs: bool
) -> None:
    assert is_harness_path(path, folders, {"known/SKILL.md": b"", "source/main.py": b""}) is belongs


def test_five_hundred_skills_are_read() -> None:
    files = {f"skills/s{number}/SKILL.md": skill(f"s{number}") for number in range(500)}
    harness = read(files)
    assert len(harness.skills) == 501
    assert codes(harness) == []


@pytest.mark.parametrize(("encoding", "is_read"), [("utf-8", True), ("utf-8-sig", True), ("utf-16", True)])
def test_a_file_of_almost_the_name_is_a_skill_by_its_front_matter(encoding: str, *, is_read: bool) -> None:
    files = {
        "skills/x/skill.md": skill("x").decode().encode(encoding),
        "skills/y/skill.md": "# About skills\n".encode(encoding),
    }
    harness = read(files)
    assert ("x" in harness.skills) is is_read
    assert ("skills/y/skill.md", "skill_file_missing", 0) in codes(harness)
    assert not any(
        path == "skills/y/skill.md" and code != "skill_file_missing" for path, code, _ in codes(harness)
    )


def test_a_skill_is_looked_for_around_itself_however_many_folders_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(skillpaths, "is_below", lambda path, *_: asked.append(path))
    paths = [f"docs/f{number}/SKILL.md" for number in range(50)]
    found = find_listed_skills(dict.fromkeys([*paths, "docs/x"], b""), [f"s{number}" for number in range(50)])
    assert [problem.code for problem in found.problems] == ["skill_outside"] * 50
    assert asked == []


def test_a_folder_without_a_skill_is_told_in_each_listed_folder_around_it() -> None:
    found = find_listed_skills({"a/b/c/x": b"", "a/b/y/z": b"", "a/q": b""}, ["a", "a/b", "no"])
    assert [(problem.path, problem.message.split()[-1]) for problem in found.problems] == [
        ("a/b/c/x", "a/b/c"),
        ("a/b/c/x", "a/b"),
        ("a/b/y/z", "a/b/y"),
    ]
