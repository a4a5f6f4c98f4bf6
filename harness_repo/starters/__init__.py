"""The harnesses that ship: `live_commerce`, the avatar of a live shopping room, and `judge`.

They are harness files like any other, kept as package data. This module only reads them; putting them
into a repository is the caller's work.
"""

from importlib import resources
from importlib.resources.abc import Traversable

STARTERS = ("live_commerce", "judge")


def starter_files(name: str) -> dict[str, bytes]:
    """Return the files of the starter as path -> bytes, with `/` in paths; KeyError when there is none so named."""
    if name not in STARTERS:
        raise KeyError(name)
    return dict(sorted(_walk(resources.files(__name__) / name, "")))


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        else:
            found.append((f"{prefix}{entry.name}", entry.read_bytes()))
    return found
