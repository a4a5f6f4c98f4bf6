"""What a model's edits make of the files."""

from typing import Any

import pytest

from evolution.prompts.file_edits import BadEdit, FileEdit, apply_edits

FILES = {
    "prompts/a.md": b"- one",
    "old.md": b"x\r\ny\r\n",
    "skills/a/SKILL.md": b"name: a\n",
    "skills/a/b.png": b"\xff",
}


def edit(path: str, action: str, **fields: Any) -> FileEdit:
    return FileEdit.model_validate({"path": path, "action": action, **fields})


def test_edits_apply_in_order() -> None:
    edits = [
        edit("prompts/a.md", "append_line", content="- two"),
        edit("prompts/a.md", "append_line", content="- three"),
        edit("hooks/b.yaml", "create", content="name: b"),
        edit("old.md", "delete"),
    ]
    assert apply_edits(FILES, edits) == {
        "prompts/a.md": b"- one\n- two\n- three\n",
        "hooks/b.yaml": b"name: b\n",
        "old.md": None,
    }


def test_blocks_change_a_file_in_place() -> None:
    edits = [edit("prompts/a.md", "search_replace", blocks=[{"search": "one", "replace": "two"}])]
    assert apply_edits(FILES, edits) == {"prompts/a.md": b"- two"}


def test_a_renamed_file_can_change_its_text() -> None:
    blocks = [{"search": "name: a", "replace": "name: z"}]
    edits = [edit("skills/a/SKILL.md", "rename", new_path="skills/z/SKILL.md", blocks=blocks)]
    assert apply_edits(FILES, edits) == {"skills/a/SKILL.md": None, "skills/z/SKILL.md": b"name: z\n"}


def test_a_folder_moves_with_all_in_it_and_is_edited_there() -> None:
    edits = [
        edit("skills/a", "rename", new_path="skills/z"),
        edit("skills/z/SKILL.md", "search_replace", blocks=[{"search": ": a", "replace": ": z"}]),
    ]
    made = apply_edits(FILES, edits)
    assert (made["skills/z/SKILL.md"], made["skills/z/b.png"]) == (b"name: z\n", b"\xff")
    assert {path for path, data in made.items() if data is None} == {"skills/a/SKILL.md", "skills/a/b.png"}


@pytest.mark.parametrize("action", ["replace", "append_line"])
def test_a_file_keeps_its_line_ends(action: str) -> None:
    made = apply_edits(FILES, [edit("old.md", action, content="z\nz\n")])["old.md"]
    assert made is not None
    assert made.count(b"\n") == made.count(b"\r\n")


@pytest.mark.parametrize(
    ("path", "action", "fields", "said"),
    [
        ("../x.md", "create", {"content": "x"}, "not a path"),
        ("/etc/passwd", "create", {"content": "x"}, "not a path"),
        ("-x", "create", {"content": "x"}, "not a path"),
        ("old.md", "create", {"content": "x"}, "exists already"),
        ("b.md", "replace", {"content": "x"}, "does not exist"),
        ("b.md", "delete", {}, "does not exist"),
        ("b.md", "append_line", {"content": "x"}, "does not exist"),
        ("b.md", "search_replace", {"blocks": [{"search": "x", "replace": "y"}]}, "does not exist"),
        ("old.md", "search_replace", {}, "needs blocks"),
        ("skills/a/b.png", "search_replace", {"blocks": [{"search": "x", "replace": "y"}]}, "is not text"),
        ("old.md", "rename", {}, "needs new_path"),
        ("old.md", "rename", {"new_path": "prompts/a.md"}, "exists already"),
        ("old.md", "rename", {"new_path": "../x"}, "not a path"),
        ("nothing", "rename", {"new_path": "x"}, "does not exist"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(
    path: str, action: str, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadEdit, match=said):
        apply_edits(FILES, [edit(path, action, **fields)])


def test_all_edits_that_do_not_fit_are_named() -> None:
    with pytest.raises(BadEdit) as caught:
        apply_edits(FILES, [edit("b.md", "delete"), edit("old.md", "delete"), edit("c.md", "delete")])
    assert [line[:5] for line in str(caught.value).splitlines()] == ["b.md:", "c.md:"]
