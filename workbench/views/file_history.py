"""The commits that changed one file of a harness, and what one of them did to it."""

from django.contrib import messages
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from evolution.loop.repositories import open_repository
from harness_repo.git.commits import FileChange
from harness_repo.git.diffs import parse_diff
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import HarnessRepository
from workbench.access import Request, get_harness_for
from workbench.diff_view import FileView, view_diff
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
            "files": _view_change(repository, shown) if shown else [],
            "is_cut": len(changes) == _SHOWN,
        }
    except (HarnessRepoError, ValueError) as error:
        messages.error(request, str(error))
    return render_page(request, "file_history.html", context, record)


def _choose(changes: list[FileChange], commit: str) -> FileChange | None:
    """The change that was asked for, else the newest."""
    asked = (change for change in changes if change.commit.sha == commit)
    return next(asked, changes[0] if changes else None)


def _view_change(repository: HarnessRepository, change: FileChange) -> list[FileView]:
    paths = [path for path in (change.old_path, change.path) if path]
    return view_diff(parse_diff(repository.change_of(change.commit.sha, paths)))
