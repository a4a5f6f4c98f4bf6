"""Uploads that wait below settings.IMPORTS_DIR until they are imported; web and workers share that folder.

Each import has a folder of its own, in which its files are numbered: names come from outside, and name nothing here.
"""

import hashlib
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.utils.translation import gettext as _

from evolution.adapters.formats.detect import FileRecords, LeaveOut, look_at_table, open_stream
from evolution.adapters.formats.values import escape
from evolution.errors import LoopError

LONGEST_NAME = 200


class Upload(Protocol):
    """A file that came with a request, as Django hands it over."""

    @property
    def name(self) -> str | None:
        """What the browser calls it."""

    def chunks(self) -> Iterator[bytes]:
        """Its content, piece by piece."""


def stage(uploads: Iterable[Upload]) -> list[dict[str, Any]]:
    """Write uploads to disk; returns them as `ImportRun.files` keeps them. Raises LoopError when that can't be done."""
    folder = Path(settings.IMPORTS_DIR) / secrets.token_hex(16)
    try:
        folder.mkdir(parents=True, mode=0o700)
        return [_write(upload, folder / str(number)) for number, upload in enumerate(uploads)]
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        text = _("the upload can't be stored: %(problem)s")
        raise LoopError(text % {"problem": error.strerror or error}) from error


def _write(upload: Upload, path: Path) -> dict[str, Any]:
    size, digest = 0, hashlib.sha256()
    with path.open("xb") as file:
        for chunk in upload.chunks():
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    name = show_name(upload.name or "upload")
    return {
        "name": name,
        "size": size,
        "digest": digest.hexdigest(),
        "path": str(path.relative_to(settings.IMPORTS_DIR)),
    }


def show_name(name: str) -> str:
    """A file's name without folders, as people can read and PostgreSQL can store it; of a long one the end is kept."""
    last = escape(name.replace("\\", "/").rsplit("/", 1)[-1])
    return last[-LONGEST_NAME:] or "upload"


def staged_path(file: dict[str, Any]) -> Path:
    """Where a staged file is; raises LoopError when it is not there, or never was."""
    path = Path(settings.IMPORTS_DIR) / str(file.get("path") or "absent")
    if not path.is_file():
        text = _("%(name)s is not here any more; upload it again")
        raise LoopError(text % {"name": file.get("name")})
    return path


def open_staged(
    files: list[dict[str, Any]],
    fmt: str,
    mapping: dict[str, str],
    leave_out: LeaveOut = lambda _name: None,
) -> Iterator[FileRecords]:
    """Open the uploads of an import, from the first one on; raises LoopError when they are gone."""
    tables = [file for file in files if mapping and _is_table(file, mapping)]
    for file in files:
        # What was said of the columns of a table is not meant for what else was uploaded with it.
        own_mapping = {} if tables and file not in tables else mapping
        with staged_path(file).open("rb") as stream:
            yield from open_stream(stream, file["name"], fmt, own_mapping, leave_out)


def _is_table(file: dict[str, Any], mapping: dict[str, str]) -> bool:
    with staged_path(file).open("rb") as stream:
        return look_at_table(stream, file["name"], mapping) is not None


def remove(files: Iterable[dict[str, Any]]) -> None:
    """Delete the folder of these files, if they are staged; once more is harmless."""
    for file in files:
        if file.get("path"):
            shutil.rmtree((Path(settings.IMPORTS_DIR) / str(file["path"])).parent, ignore_errors=True)


def list_folders() -> list[Path]:
    """The folders of all imports that wait."""
    root = Path(settings.IMPORTS_DIR)
    return [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
