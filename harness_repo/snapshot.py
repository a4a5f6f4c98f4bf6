"""All that stands under a version or in a folder: files, and what is no file (symbolic links, submodules)."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Snapshot:
    """Path -> what stands there, paths with forward slashes from the root."""

    # Regular files, byte exact.
    files: Mapping[str, bytes]
    # Symbolic links: the target as it is written, never followed.
    links: Mapping[str, str] = field(default_factory=dict)
    # Submodules (gitlinks): the id of the commit they point to.
    submodules: Mapping[str, str] = field(default_factory=dict)
    # Those of the files that are executable.
    executables: frozenset[str] = frozenset()
    # What could not be read, and why: a socket, a file without permission, one that is far too large.
    skipped: Mapping[str, str] = field(default_factory=dict)
