"""Stage 4, judged by people: where the threads about lines stand in the newest diff, and what they tell the editor.

A thread follows its line through what was committed since. Nothing here writes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evolution.errors import LoopError
from evolution.loop.repositories import open_repository
from evolution.models import Proposal, ReviewThread
from evolution.prompts.feedback import LineComment, write_feedback
from harness_repo.git.diffs import DiffLine, FileDiff, parse_diff
from harness_repo.git.errors import BadPath, HarnessRepoError, MissingRef
from harness_repo.git.repository import HarnessRepository

OLD, NEW = "old", "new"
# of a line, as it is kept with a thread
LONGEST_LINE = 2000


@dataclass(frozen=True)
class PlacedThread:
    """A thread and where it stands now; `line` 0 is the file as a whole, no path the whole proposal."""

    thread: ReviewThread
    path: str
    line: int
    # the line, or its file, is there no longer: path and line are those of then
    is_outdated: bool = False


def commit_of(proposal: Proposal, side: str) -> str:
    """The commit whose file stands on a side of the proposal's diff."""
    return proposal.base_commit if side == OLD else proposal.head_commit


def read_line(repository: HarnessRepository, commit: str, path: str, line: int) -> str:
    """A line of a file, from 1; empty for 0. LoopError when there is no such line or file."""
    try:
        lines = repository.read_file(commit, path).decode("utf-8", "replace").split("\n")
    except (MissingRef, BadPath) as failure:
        raise LoopError(str(failure)) from failure
    if not 0 <= line <= len(lines):
        raise LoopError(f"{path} has no line {line}")
    return lines[line - 1][:LONGEST_LINE] if line else ""


def place_threads(proposal: Proposal, threads: Iterable[ReviewThread]) -> list[PlacedThread]:
    """Where each thread stands in the diff of the proposal as it is now, in the order given."""
    changes: dict[tuple[str, str], list[FileDiff] | None] = {}
    placed = []
    for thread in threads:
        target = commit_of(proposal, thread.side)
        key = (thread.commit, target)
        if key not in changes:
            changes[key] = _read_changes(open_repository(proposal.harness), *key)
        placed.append(_place(thread, changes[key]))
    return placed


def _read_changes(repository: HarnessRepository, old: str, new: str) -> list[FileDiff] | None:
    """None when git has one of them no longer."""
    if old == new:
        return []
    try:
        return parse_diff(repository.diff(old, new))
    except (HarnessRepoError, ValueError):
        return None


def _place(thread: ReviewThread, changes: Sequence[FileDiff] | None) -> PlacedThread:
    found = None if changes is None else follow_line(changes, thread.path, thread.line)
    if found is None:
        return PlacedThread(thread, thread.path, thread.line, is_outdated=True)
    return PlacedThread(thread, *found)


def follow_line(changes: Iterable[FileDiff], path: str, line: int) -> tuple[str, int] | None:
    """Path and number of a line after the changes; None when it is gone.

    A line that was taken out and stands once among those put in, but for white space around it, has moved there.
    """
    file = next((file for file in changes if (file.old_path or file.path) == path), None)
    if file is None:
        return path, line
    if file.status == "removed" or (line and file.is_binary):
        return None
    number = _follow(file, line) if line else 0
    return None if number is None else (file.path, number)


def _follow(file: FileDiff, line: int) -> int | None:
    shift = 0
    lines = [row for hunk in file.hunks for row in hunk.lines]
    for row in lines:
        if row.old == line:
            return row.new if row.kind == " " else _find_moved(lines, row.text)
        if row.old is not None and row.old > line:
            break
        shift += (row.kind == "+") - (row.kind == "-")
    return line + shift


def _find_moved(lines: Iterable[DiffLine], text: str) -> int | None:
    wanted = text.strip()
    found = [row.new for row in lines if row.kind == "+" and wanted and row.text.strip() == wanted]
    return found[0] if len(found) == 1 else None


def compose_instruction(text: str, threads: Iterable[PlacedThread]) -> str:
    """What the editor is told: the reviewer's words, what was said of it all, then the threads about lines."""
    words, comments = [text.strip()], []
    for placed in threads:
        said = tuple((comment.author, comment.text) for comment in placed.thread.comments.all())
        if placed.path:
            side = OLD if placed.is_outdated else placed.thread.side
            line_text = placed.thread.line_text.strip()
            comments.append(LineComment(placed.path, side, placed.line, line_text, said))
        else:
            words += [f"{author}: {comment}" for author, comment in said]
    return write_feedback("\n".join(part for part in words if part), comments)
