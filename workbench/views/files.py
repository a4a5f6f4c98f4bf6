"""The files of a version of a harness, read only, with what is wrong in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.contrib import messages
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from evolution.loop.repositories import open_repository
from harness_repo.format.harness import CONFIG, read_harness
from harness_repo.format.problems import Problem
from harness_repo.format.textfile import MAX_FILE_BYTES
from harness_repo.git.errors import HarnessRepoError
from harness_repo.snapshot import Snapshot
from workbench.access import Request, get_harness_for
from workbench.rendering import render_page

_SHOWN_PROBLEMS = 200


@dataclass(frozen=True)
class Entry:
    """One line of the list of files."""

    # As it is shown and asked for: bytes that are no UTF-8 are U+FFFD.
    name: str
    # "file"; "link", a symbolic link, which is not followed; "submodule", of which only the commit is known.
    kind: str
    # Where a link leads, or the commit of a submodule.
    target: str = ""


@require_safe
def harness_files(request: Request, harness: str) -> HttpResponse:
    """Show a version (?ref=, else what is live) and one of its files (?path=)."""
    record = get_harness_for(request, harness)
    ref = request.GET.get("ref") or "main"
    context: dict[str, object] = {"ref": ref}
    try:
        repository = open_repository(record)
        commit = repository.resolve(ref)
        snapshot = repository.snapshot(commit)
        context |= {"commit": commit, "log": repository.log(commit, 30)}
    except HarnessRepoError as error:
        messages.error(request, str(error))
        return render_page(request, "files.html", context, record)
    read = read_harness(snapshot)
    problems = _in_order(read.problems)
    context |= {
        "version": read,
        "problem_count": len(problems),
        "problems": problems[:_SHOWN_PROBLEMS],
        "entries": _list_entries(snapshot),
    }
    return render_page(request, "files.html", context | _choose(snapshot, request.GET.get("path")), record)


def _in_order(problems: Sequence[Problem]) -> list[Problem]:
    """Errors first, with nothing in them that a page could not hold."""
    shown = [
        replace(problem, path=_showable(problem.path), message=_showable(problem.message))
        for problem in problems
    ]
    return sorted(shown, key=lambda problem: (not problem.is_error, problem.path, problem.line))


def _list_entries(snapshot: Snapshot) -> list[Entry]:
    entries = [Entry(_showable(path), "file") for path in snapshot.files]
    entries += [Entry(_showable(path), "link", _showable(to)) for path, to in snapshot.links.items()]
    entries += [Entry(_showable(path), "submodule", sha) for path, sha in snapshot.submodules.items()]
    return sorted(entries, key=lambda entry: entry.name)


def _choose(snapshot: Snapshot, asked: str | None) -> dict[str, object]:
    """The file that was asked for; else harness.yaml, or what there is where an agent has none."""
    names = {_showable(path): path for path in snapshot.files}
    path = asked or (CONFIG if CONFIG in names else min(names, default=CONFIG))
    entries = {entry.name: entry for entry in _list_entries(snapshot)}
    chosen: dict[str, object] = {"path": path, "entry": entries.get(path)}
    data = snapshot.files.get(names.get(path, ""))
    if data is None:
        return chosen
    if b"\0" in data or len(data) > MAX_FILE_BYTES:
        return {**chosen, "size": len(data)}
    return {**chosen, "content": data.decode("utf-8", "replace")}


def _showable(text: str) -> str:
    """A path as a page can hold it: git's paths are bytes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
