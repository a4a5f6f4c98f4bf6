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
