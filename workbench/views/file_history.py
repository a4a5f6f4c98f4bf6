"""The commits that changed one file of a harness, and what one of them did to it."""

import contextlib
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from evolution.loop.repositories import open_repository
from harness_repo.git.commits import FileChange
from harness_repo.git.diffs import parse_diff
from harness_repo.git.errors import HarnessRepoError, MissingRef
from harness_repo.git.repository import HarnessRepository
from workbench.access import Request, get_harness_for
from workbench.diff_page import Change, answer_file, show_change
from workbench.diff_view import Sources
from workbench.rendering import render_page

_SHOWN = 100


@require_safe
def file_history(request: Request, harness: str) -> HttpResponse:
    """Show who changed a file (?path=) up to a version (?ref=, else what is live), and one change (?commit=)."""
    record = get_harness_for(request, harness)
    ref, path = request.GET.get("ref") or "main", request.GET.get("path") or "harness.yaml"
    context: dict[str, object] = {"ref": ref, "path": path}
    try:
        repository = open_repository(record)
        changes = repository.history(path, ref, _SHOWN)
        shown = _choose(changes, request.GET.get("commit", ""))
        context |= {
            "changes": changes,
            "shown": shown,
            "diff": show_change(request, _view_change(repository, harness, shown)) if shown else None,
            "is_cut": len(changes) == _SHOWN,
        }
    except (HarnessRepoError, ValueError) as error:
        messages.error(request, str(error))
    return render_page(request, "file_history.html", context, record)


def _choose(changes: list[FileChange], commit: str) -> FileChange | None:
    """The change that was asked for, else the newest."""
    asked = (change for change in changes if change.commit.sha == commit)
    return next(asked, changes[0] if changes else None)


def _view_change(repository: HarnessRepository, harness: str, shown: FileChange) -> Change:
    return _read_change(repository, harness, shown.commit.sha, [shown.old_path or "", shown.path])


def _read_change(repository: HarnessRepository, harness: str, commit: str, paths: list[str]) -> Change:
    """What a commit did to a file; `paths` are its names before and after."""
    names = list(dict.fromkeys(path for path in paths if path))
    query = urlencode({"commit": commit, "name": names}, doseq=True, errors="replace")
    address = f"{reverse('history_file', args=[harness])}?{query}"
    parents = repository.log(commit, 1)[0].parents
    base = _read_files(repository, parents[0], names) if parents else {}
    sources = Sources(base, _read_files(repository, commit, names))
    return Change(parse_diff(repository.change_of(commit, names)), sources, commit, address)


def _read_files(repository: HarnessRepository, commit: str, paths: list[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in paths:
        with contextlib.suppress(MissingRef):
            found[path] = repository.read_file(commit, path)
    return found


@require_safe
def history_file(request: Request, harness: str) -> HttpResponse:
    """A part of what a commit (?commit=) did to a file (?name=, once or twice); see `answer_file`."""
    record = get_harness_for(request, harness)
    try:
        repository = open_repository(record)
        commit = repository.resolve(request.GET.get("commit", ""))
        change = _read_change(repository, harness, commit, request.GET.getlist("name"))
    except (HarnessRepoError, ValueError) as error:
        raise Http404(str(error)) from error
    query = urlencode({"path": request.GET.get("path", ""), "ref": commit})
    back = f"{reverse('file_history', args=[harness])}?{query}"
    return answer_file(request, change, record, {"back": back, "back_name": _("History")})
