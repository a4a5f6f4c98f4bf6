"""Merges as commits: heads put one after the other onto a version, or a version taken into a branch. No ref moves."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_repo.git.commits import write_commit
from harness_repo.git.errors import NothingToCommit
from harness_repo.git.gitio import GitRunner
from harness_repo.git.merges import Resolutions, contains, merge_trees
from harness_repo.git.objects import Author, ObjectWriter
from harness_repo.git.standing import Standing


@dataclass(frozen=True)
class Merging:
    """Who merges, what the commits say, and what people decided of conflicts; everything is written at once."""

    git: GitRunner
    writer: ObjectWriter
    standing: Standing
    author: Author
    message: str
    resolutions: Resolutions = field(default_factory=dict)

    def merge_heads(self, start: str, heads: Sequence[str]) -> str:
        """The last of the merge commits, one for each head that is not contained; MergeConflict, NothingToCommit."""
        current = start
        for head in heads:
            if not contains(self.git, current, head):
                current = self._write(current, head, [current, head])
        if current == start:
            raise NothingToCommit("everything to merge is contained already")
        return current

    def take_in(self, head: str, onto: str) -> str:
        """A commit after `head`, with the files of its merge onto `onto`; MergeConflict, NothingToCommit."""
        if contains(self.git, head, onto):
            raise NothingToCommit("it builds on that already")
        return self._write(onto, head, [head, onto])

    def _write(self, ours: str, theirs: str, parents: list[str]) -> str:
        tree = merge_trees(self.git, self.writer, ours, theirs, self.resolutions)
        self.standing.need(ours, theirs, tree)
        new = write_commit(self.writer, tree, parents, self.author, self.message)
        self.writer.flush()
        return new
