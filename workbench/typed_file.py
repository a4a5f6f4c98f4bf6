"""What a person has typed of a proposal's file: what saving it would do, and what somebody else did to it meanwhile."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.http import QueryDict
from django.utils.translation import gettext as _

from evolution.loop.edits import Edits, apply_changes, describe_added, find_edit_faults, list_added
from evolution.loop.proposals import branch_head
from evolution.loop.repositories import open_repository
from evolution.models import Proposal
from harness_repo.format.harness import read_harness
from harness_repo.format.problems import Problem
from workbench.diff_view import FileView, view_diff
from workbench.typed_diff import diff_texts

Files = Mapping[str, bytes]


@dataclass
class Typed:
    """What stands in the form; `path` is empty for a new file, `target` is where the file is to be."""

    path: str
    target: str
    content: str
    message: str = ""
    # the version that it was begun on
    expected_head: str = ""


@dataclass(frozen=True)
class Standing:
    """The proposal's files: of its base, and of the branch as it is now."""

    head: str
    base: Files
    files: Files


@dataclass(frozen=True)
class Checked:
    """What saving would do: what stands against it, problems of the file, and the change."""

    faults: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    change: list[FileView] = field(default_factory=list)
    # whether it can't be saved; what is told of the problems of the file is no fault besides
    is_refused: bool = False


def read_standing(proposal: Proposal) -> Standing:
    """Raises HarnessRepoError when git has the versions no longer."""
    repository = open_repository(proposal.harness)
    head = branch_head(repository, proposal) or proposal.base_commit
    return Standing(head, repository.files(proposal.base_commit), repository.files(head))


def read_typed(posted: QueryDict) -> Typed:
    """The form as it came, valid or not. Browsers send CRLF; harness files have LF."""
    path = posted.get("path", "")
    return Typed(
        path=path,
        target=posted.get("new_path", "") or path,
        content=posted.get("content", "").replace("\r\n", "\n"),
        message=posted.get("message", ""),
        expected_head=posted.get("expected_head", ""),
    )


def check_typed(typed: Typed, standing: Standing) -> Checked:
    """What saving the text on the branch as it is now would do."""
    change = _view_change(typed, standing)
    if typed.target != typed.path and typed.target in standing.files:
        return Checked([_("%(path)s is there already") % {"path": typed.target}], [], change, is_refused=True)
    if not change:
        return Checked()
    edits: Edits = {typed.target: typed.content.encode("utf-8", "replace")}
    if typed.path and typed.path != typed.target:
        edits = {typed.path: None, **edits}
    faults = find_edit_faults(standing.base, standing.files, edits)
    problems = read_harness(apply_changes(standing.files, edits)).problems
    mine = [problem for problem in problems if problem.path == typed.target]
    return Checked(_without_told(faults, standing, problems, mine), mine, change, is_refused=bool(faults))


def _without_told(
    faults: list[str], standing: Standing, problems: list[Problem], mine: list[Problem]
) -> list[str]:
    """Without the sum of problems that are all listed one by one, with their lines."""
    added = list_added(read_harness(standing.base).problems, problems)
    if not added or any(problem not in mine for problem in added):
        return faults
    return [fault for fault in faults if fault != describe_added(added)]


def _view_change(typed: Typed, standing: Standing) -> list[FileView]:
    before = _decode(standing.files.get(typed.path))
    file = diff_texts(typed.target, before, typed.content, typed.path if before is not None else "")
    return view_diff([file]) if file else []


def view_others_change(proposal: Proposal, typed: Typed, standing: Standing) -> list[FileView]:
    """What the file became since the typing began; empty when that is nothing, or not known."""
    begun = open_repository(proposal.harness).files(typed.expected_head)
    old, new = _decode(begun.get(typed.path)), _decode(standing.files.get(typed.path))
    file = diff_texts(typed.path, old, new) if typed.path else None
    return view_diff([file]) if file else []


def _decode(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace").replace("\r\n", "\n")
