import pytest

from evolution.loop.edits import EditRefused, check_edits
from harness_repo.starters import starter_files
from tests.evolution.intake import SKILL

BASE = starter_files("live_commerce")


def test_a_sound_edit_gives_the_files_after_it() -> None:
    after = check_edits(
        BASE, BASE, {SKILL: BASE[SKILL] + b"- more\n", "prompts/faq.md": BASE["prompts/faq.md"]}
    )
    assert after == {**BASE, SKILL: BASE[SKILL] + b"- more\n"}


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "/etc/passwd",
        "../x",
        "skills/../../x",
        "skills//x",
        "prompts/./x",
        ".git/config",
        "tools/\x1b.yaml",
    ],
)
def test_paths_outside_the_harness_are_refused(path: str) -> None:
    with pytest.raises(EditRefused, match="not a path inside"):
        check_edits(BASE, BASE, {path: b"x\n"})


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({SKILL: BASE[SKILL]}, "changes nothing"),
        ({}, "changes nothing"),
        ({"skills/new/SKILL.md": b"no front matter\n"}, "add problems: skills/new/SKILL.md"),
        ({"hooks/new.yaml": b"name: [\n"}, "add problems: hooks/new.yaml"),
        ({"prompts/role.md": b"{{ nobody }"}, "add problems: prompts/role.md"),
        ({"prompts/role.md": None}, "add problems"),
        (
            {"harness.yaml": BASE["harness.yaml"].replace(b"kind: agent", b"kind: judge")},
            "problems|of kind judge",
        ),
        ({SKILL: b"x" * 300_000}, "larger than"),
        ({SKILL: b"a\0b"}, "not text"),
    ],
)
def test_what_can_not_go_on_a_branch_is_refused(edits: dict[str, bytes | None], said: str) -> None:
    with pytest.raises(EditRefused, match=said):
        check_edits(BASE, BASE, edits)


def test_problems_of_the_base_are_not_held_against_an_edit() -> None:
    base = {**BASE, "skills/old/SKILL.md": b"no front matter\n"}
    after = check_edits(base, base, {"skills/old/SKILL.md": b"still no front matter\n"})
    assert after["skills/old/SKILL.md"].startswith(b"still")


def test_a_problem_that_an_earlier_edit_added_is_held_against_the_next() -> None:
    before = {**BASE, "skills/old/SKILL.md": b"no front matter\n"}
    with pytest.raises(EditRefused, match="skills/old"):
        check_edits(BASE, before, {SKILL: BASE[SKILL] + b"- more\n"})


def foreign(skill_folders: str) -> dict[str, bytes]:
    """The starter with its skills in folders of the root, beside source code."""
    config = BASE["harness.yaml"] + f"skill_folders: {skill_folders}\n".encode()
    moved = {path.removeprefix("skills/"): data for path, data in BASE.items()}
    return {**moved, "harness.yaml": config, "source/main.py": b"print()\n"}


def test_skills_are_edited_in_the_skill_folders_of_the_base() -> None:
    base = foreign("[.]")
    path = SKILL.removeprefix("skills/")
    assert check_edits(base, base, {path: base[path] + b"- more\n"})
    with pytest.raises(EditRefused, match="not a path inside"):
        check_edits(base, base, {"source/main.py": b"x\n"})


def test_an_edit_opens_no_folder_to_itself() -> None:
    opened = BASE["harness.yaml"] + b"skill_folders: [skills, source]\n"
    with pytest.raises(EditRefused, match="not a path inside"):
        check_edits(BASE, BASE, {"harness.yaml": opened, "source/x/SKILL.md": BASE[SKILL]})
