"""Settles two histories of a branch in favour of one: the other is contained afterwards, and changes nothing."""

from harness_repo.git.commits import read_links, write_commit
from harness_repo.git.gitio import GitRunner
from harness_repo.git.objects import Author, ObjectReader, ObjectWriter
from harness_repo.git.repository import HarnessRepository


def build_superseding(
    repository: HarnessRepository, head: str, other: str, *, author: Author, message: str
) -> str:
    """A commit after `head`, with its files, that has `other` as its second parent; no branch moves. MissingRef.

    Whoever has `other` can move on to it without force.
    """
    git = GitRunner(repository.path)
    parents = [repository.resolve(head), repository.resolve(other)]
    with ObjectReader(git) as reader:
        tree = read_links(reader, parents[0]).tree
    writer = ObjectWriter(git.path / "objects")
    commit = write_commit(writer, tree, parents, author, message)
    writer.flush()
    return commit
