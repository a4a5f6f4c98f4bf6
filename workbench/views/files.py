"""The files of a version of a harness, read only, with what is wrong in them."""

from django.contrib import messages
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from evolution.loop.repositories import open_repository
from harness_repo.errors import HarnessRepoError
from harness_repo.harness import read_harness
from workbench.access import Request, get_harness_for
from workbench.rendering import render_page


@require_safe
def harness_files(request: Request, harness: str) -> HttpResponse:
    """Show a version (?ref=, else what is live) and one of its files (?path=)."""
    record = get_harness_for(request, harness)
    ref = request.GET.get("ref") or "main"
    context: dict[str, object] = {"ref": ref}
    try:
        repository = open_repository(record)
        commit = repository.resolve(ref)
        files = repository.files(commit)
        context |= {"commit": commit, "paths": sorted(files), "log": repository.log(commit, 30)}
    except HarnessRepoError as error:
        messages.error(request, str(error))
        return render_page(request, "files.html", context, record)
    read = read_harness(files)
    path = request.GET.get("path") or "harness.yaml"
    context |= {"version": read, "path": path, "problems": read.problems}
    if path in files:
        context["content"] = files[path].decode("utf-8", "replace")
    return render_page(request, "files.html", context, record)
