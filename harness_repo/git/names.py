"""Which ref names and paths are let through to git: hostile and option-like ones are refused."""

import re

from harness_repo.git.errors import BadPath, BadRef

MAX_NAME_BYTES = 200
# A name of ours below refs/remotes/<name>/.
_MAX_FULL_BYTES = 1024
# A part is the name of a file, which git locks as `<part>.lock`.
_MAX_PART_BYTES = 250
MAX_PATH_BYTES = 1024

# The characters that git check-ref-format forbids anywhere in a name.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]")
# Control characters of 8 bits, what Python takes for the end of a line, and what turns the direction of writing.
_INVISIBLE = re.compile("[\x80-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Code points that HFS+ ignores in file names, so that ".g\u200cit" would be ".git" there.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_OBJECT_ID = re.compile(r"[0-9a-f]{40}")


def check_ref_name(name: str) -> str:
    """Return a branch or tag name that is safe, or raise BadRef; git-check-ref-format's rules, and more."""
    parts = name.split("/")
    bad = (
        not name
        or not 0 < _size(name) <= _MAX_FULL_BYTES
        or name.startswith("-")
        or name == "@"
        or name.endswith(".")
        or ".." in name
        or "@{" in name
        or _FORBIDDEN.search(name) is not None
        or any(not part or part.startswith((".", "-")) or part.endswith(".lock") for part in parts)
        or any(_size(part) > _MAX_PART_BYTES for part in parts)
    )
    if bad:
        raise BadRef(f"not a usable ref name: {name!r}")
    return name


def check_new_ref_name(name: str) -> str:
    """As check_ref_name, for a name to be created: not one that reads as HEAD, a full ref or an object id.

    Nor one with characters that nobody sees.
    """
    check_ref_name(name)
    if _size(name) > MAX_NAME_BYTES or _INVISIBLE.search(name):
        raise BadRef(f"not a usable name for a branch or tag: {name!r}")
    if name == "HEAD" or name.startswith("refs/") or _OBJECT_ID.fullmatch(name):
        raise BadRef(f"not a usable name for a branch or tag: {name!r}")
    return name


def check_path(path: str) -> str:
    """Return a path inside the tree, with forward slashes, or raise BadPath."""
    parts = path.split("/")
    bad = (
        not path
        or not 0 < _size(path) <= MAX_PATH_BYTES
        or path.startswith("-")
        or "\\" in path
        or _CONTROL.search(path) is not None
        or any(part in ("", ".", "..") or _size(part) > 255 for part in parts)
        or any(_is_git_folder(part) for part in parts)
    )
    if bad:
        raise BadPath(f"not a usable path: {path!r}")
    return path


def _size(name: str) -> int:
    """Its bytes; 0 for text that is none (a half of a surrogate pair), which git could not be told."""
    try:
        return len(name.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return 0


def _is_git_folder(part: str) -> bool:
    """Whether some file system would take the name for .git (case, trailing dots, streams, short names)."""
    plain = _IGNORED.sub("", part).split(":")[0].rstrip(". ").lower()
    return plain in (".git", "git~1")
