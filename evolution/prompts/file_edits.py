"""A model's edits of a harness's files: their forms, and what they make of the files. Nothing is written here."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field

from evolution.prompts.edit_blocks import BadEdit, EditBlock, line_end, replace_blocks, with_line_end

__all__ = ["BadEdit", "EditBlock", "FileEdit", "apply_edits"]

# In characters; what an edit may leave of a file is less, and checked apart.
LONGEST_CONTENT = 200_000
LONGEST_PATH = 300

SAFE_PATH = re.compile(r"^(?!/)(?!.*(?:^|/)\.\.?(?:/|$))(?!-)[\w./ -]+$")

Changed = dict[str, bytes | None]


class FileEdit(BaseModel):
    """One change of one file."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1, max_length=LONGEST_PATH, description="path inside the harness")
    action: Literal["create", "replace", "search_replace", "append_line", "delete", "rename"]
    content: str = Field(
        default="",
        max_length=LONGEST_CONTENT,
        description="whole content for create and replace, the line for append_line, else empty",
    )
    blocks: list[EditBlock] = Field(
        default=[],
        max_length=40,
        description="for search_replace, in order; for rename, if the text changes too",
    )
    new_path: str = Field(
        default="",
        max_length=LONGEST_PATH,
        description="for rename: where the file goes, or the folder with all in it",
    )


def apply_edits(files: Mapping[str, bytes], edits: Sequence[FileEdit]) -> Changed:
    """What to commit: path -> new content, None to delete. Raises BadEdit, which names all edits that don't fit."""
    changed: Changed = {}
    faults = []
    for edit in edits:
        try:
            changed |= _apply(edit, {**files, **changed})
        except BadEdit as failure:
            faults.append(f"{edit.path}: {failure}")
        except UnicodeDecodeError:
            faults.append(_("%(path)s is not text") % {"path": edit.path})
    if faults:
        raise BadEdit("\n".join(faults))
    return changed


def _apply(edit: FileEdit, files: Mapping[str, bytes | None]) -> Changed:
    _check_path(edit.path)
    if edit.action == "rename":
        return _renamed(edit, files)
    return {edit.path: _edited(edit, files.get(edit.path))}


def _check_path(path: str) -> None:
    if not SAFE_PATH.match(path):
        raise BadEdit(_("not a path inside the harness"))


def _edited(edit: FileEdit, before: bytes | None) -> bytes | None:
    if edit.action == "create":
        if before is not None:
            raise BadEdit(_("exists already"))
        return _ended(edit.content).encode()
    if before is None:
        raise BadEdit(_("does not exist"))
    if edit.action == "delete":
        return None
    text = before.decode()
    end = line_end(text)
    if edit.action == "search_replace":
        return _with_blocks(text, edit.blocks).encode()
    if edit.action == "append_line":
        return (_ended(text, end) + _ended(with_line_end(edit.content, end), end)).encode()
    return _ended(with_line_end(edit.content, end), end).encode()


def _with_blocks(text: str, blocks: Sequence[EditBlock]) -> str:
    if not blocks:
        raise BadEdit(_("search_replace needs blocks"))
    return replace_blocks(text, blocks)


def _renamed(edit: FileEdit, files: Mapping[str, bytes | None]) -> Changed:
    if not edit.new_path:
        raise BadEdit(_("rename needs new_path"))
    _check_path(edit.new_path)
    changed: Changed = {}
    for old, new in _moves(edit, files):
        data = files[old]
        if files.get(new) is not None:
            raise BadEdit(_("%(path)s exists already") % {"path": new})
        changed[old], changed[new] = None, data
    if edit.blocks:
        data = changed.get(edit.new_path)
        if data is None:
            raise BadEdit(_("a folder has no text to search in: edit the files in it after the rename"))
        changed[edit.new_path] = replace_blocks(data.decode(), edit.blocks).encode()
    return changed


def _moves(edit: FileEdit, files: Mapping[str, bytes | None]) -> Iterator[tuple[str, str]]:
    """(old, new) path of the file, or of each file of the folder."""
    if files.get(edit.path) is not None:
        yield edit.path, edit.new_path
        return
    folder = edit.path.rstrip("/") + "/"
    inside = [path for path, data in files.items() if path.startswith(folder) and data is not None]
    if not inside:
        raise BadEdit(_("does not exist"))
    for path in inside:
        yield path, f"{edit.new_path.rstrip('/')}/{path.removeprefix(folder)}"


def _ended(text: str, end: str = "\n") -> str:
    return text if not text or text.endswith("\n") else text + end
