"""A version's tree: listed whole, and rewritten where edits touch it and nowhere else."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness_repo.git.errors import BadPath, HarnessRepoError, TooLarge
from harness_repo.git.gitio import GitRunner
from harness_repo.git.looseobjects import MAX_OBJECT_BYTES
from harness_repo.git.names import check_path
from harness_repo.git.objects import ObjectReader, ObjectWriter

FILE = "100644"
FOLDER = "40000"
# Of one version; a few small trees that name each other can stand for billions.
MAX_ENTRIES = 100_000
_MAX_LISTING = 64 * 1024 * 1024


@dataclass(frozen=True)
class TreeEntry:
    """One entry of a version's tree."""

    path: str
    # "100644" and "100755" are files, "120000" a symbolic link, "160000" a submodule.
    mode: str
    sha: str

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.mode.startswith("100")

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link, whose blob holds the target."""
        return self.mode == "120000"

    @property
    def is_submodule(self) -> bool:
        """Whether it is a gitlink: `sha` is a commit of another repository."""
        return self.mode == "160000"


@dataclass(frozen=True)
class _Node:
    """One entry of one tree object."""

    mode: str
    sha: str


@dataclass
class _Edit:
    """What is to happen below one folder."""

    # Name -> new content, None to delete.
    files: dict[bytes, bytes | None]
    folders: dict[bytes, "_Edit"]


def read_tree(git: GitRunner, commit: str) -> list[TreeEntry]:
    """All entries under a commit's tree, in git's order; TooLarge when there are more than MAX_ENTRIES."""
    out = git.read(
        "ls-tree", "-r", "-z", "--full-tree", commit, most=_MAX_LISTING, what=f"the tree of {commit[:12]}"
    )
    if out.count(b"\0") > MAX_ENTRIES:
        raise TooLarge(f"the tree of {commit[:12]} has more than {MAX_ENTRIES:,} entries")
    return [_tree_entry(record) for record in out.split(b"\0") if record]


def edit_tree(
    reader: ObjectReader, writer: ObjectWriter, tree: str | None, edits: Mapping[str, bytes | None]
) -> str:
    """The id of the tree (None: an empty one) after `edits`, None deletes; the new objects wait in the writer.

    A file keeps its mode, a folder that loses its last file is gone, a new file takes the place of a folder and
    the other way round. Raises BadPath, also for edits that need one path as a file and as a folder, and TooLarge.
    """
    return _edit_folder(reader, writer, tree, _plan(edits)) or writer.add("tree", b"")


def find_entry(reader: ObjectReader, tree: str, path: str) -> TreeEntry | None:
    """What stands at a path under a tree, a folder too; None when there is nothing."""
    node = _Node(FOLDER, tree)
    for name in path.encode("utf-8", "surrogateescape").split(b"/"):
        if node.mode != FOLDER:
            return None
        found = _read_folder(reader, node.sha).get(name)
        if found is None:
            return None
        node = found
    return TreeEntry(path, node.mode, node.sha)


def _plan(edits: Mapping[str, bytes | None]) -> _Edit:
    """The edits by folder."""
    root = _Edit({}, {})
    for path, data in edits.items():
        if data is not None and len(data) > MAX_OBJECT_BYTES:
            raise TooLarge(f"{path!r} has more than {MAX_OBJECT_BYTES // 1024**2} MB")
        *folders, name = check_path(path).encode("utf-8", "surrogateescape").split(b"/")
        edit = root
        for folder in folders:
            edit = edit.folders.setdefault(folder, _Edit({}, {}))
        edit.files[name] = data
    for edit in _walk(root):
        for name in edit.files.keys() & edit.folders.keys():
            if edit.files[name] is not None and _makes_files(edit.folders[name]):
                raise BadPath(f"both a file and a folder: {name.decode('utf-8', 'replace')!r}")
    return root


def _walk(edit: _Edit) -> Iterator[_Edit]:
    yield edit
    for below in edit.folders.values():
        yield from _walk(below)


def _makes_files(edit: _Edit) -> bool:
    return any(data is not None for below in _walk(edit) for data in below.files.values())


def _edit_folder(reader: ObjectReader, writer: ObjectWriter, tree: str | None, edit: _Edit) -> str | None:
    """The id of the tree after the edit, None when nothing is left in it."""
    nodes = _read_folder(reader, tree) if tree else {}
    before = dict(nodes)
    for name, below in edit.folders.items():
        _edit_below(reader, writer, nodes, name, below)
    for name, data in edit.files.items():
        _edit_file(writer, nodes, name, data)
    if tree and nodes == before:
        return tree
    return writer.add("tree", _encode(nodes)) if nodes else None


def _edit_below(
    reader: ObjectReader, writer: ObjectWriter, nodes: dict[bytes, _Node], name: bytes, below: _Edit
) -> None:
    old = nodes.get(name)
    is_folder = old is not None and old.mode == FOLDER
    if not is_folder and not _makes_files(below):
        return
    new = _edit_folder(reader, writer, old.sha if old and is_folder else None, below)
    if new:
        nodes[name] = _Node(FOLDER, new)
    else:
        nodes.pop(name, None)


def _edit_file(writer: ObjectWriter, nodes: dict[bytes, _Node], name: bytes, data: bytes | None) -> None:
    old = nodes.get(name)
    if data is not None:
        mode = old.mode if old and old.mode.startswith("100") else FILE
        nodes[name] = _Node(mode, writer.add("blob", data))
    elif old and old.mode != FOLDER:
        del nodes[name]


def _read_folder(reader: ObjectReader, tree: str) -> dict[bytes, _Node]:
    try:
        return _decode(reader.read(tree, "tree"))
    except ValueError as failure:
        raise HarnessRepoError(f"tree {tree} is damaged") from failure


def _decode(data: bytes) -> dict[bytes, _Node]:
    nodes: dict[bytes, _Node] = {}
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        # Old tools wrote folders as 040000; git reads both, so both are one here.
        mode = data[at:space].decode("ascii").lstrip("0")
        nodes[data[space + 1 : end]] = _Node(mode, data[end + 1 : end + 21].hex())
        at = end + 21
    return nodes


def _encode(nodes: Mapping[bytes, _Node]) -> bytes:
    """A tree object: by name, where a folder's name sorts as if it ended with a slash."""

    def rank(item: tuple[bytes, _Node]) -> bytes:
        name, node = item
        return name + b"/" if node.mode == FOLDER else name

    return b"".join(
        b"%s %s\0%s" % (node.mode.encode("ascii"), name, bytes.fromhex(node.sha))
        for name, node in sorted(nodes.items(), key=rank)
    )


def _tree_entry(record: bytes) -> TreeEntry:
    head, _, path = record.partition(b"\t")
    mode, _, sha = head.decode().split(" ")
    return TreeEntry(path.decode("utf-8", "surrogateescape"), mode, sha)
