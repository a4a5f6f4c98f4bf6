"""Imports of failures: upload, preview with its settings, the import itself with its progress, and its problems."""

import csv
from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import imports as import_actions
from evolution.actors import Role
from evolution.adapters.formats.detect import FORMATS
from evolution.errors import LoopError
from evolution.loop.imports import ImportOptions, read_options
from evolution.models import Harness, ImportRun, Source
from evolution.queries import imports as import_queries
from evolution.states import ImportState
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.forms import first_error
from workbench.import_forms import ImportSettingsForm, UploadsForm, read_settings, show_rule
from workbench.rendering import refresh_when_done, render_page


@require_safe
def import_list(request: Request, harness: str) -> HttpResponse:
    """List the imports of a harness, newest first."""
    record = get_harness_for(request, harness)
    context = {"page": import_queries.list_imports(record, request.GET.get("page", 1))}
    return render_page(request, "imports.html", context, record)


@require_POST
def upload(request: Request, harness: str) -> HttpResponse:
    """Keep uploaded files, and show what an import of them would look like."""
    record = get_harness_for(request, harness)
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
    form = UploadsForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, first_error(form))
        return redirect("imports", record.name)
    with told(request):
        run = import_actions.stage_uploads(actor_of(request), record, form.cleaned_data["uploads"])
        return redirect("import_run", record.name, run.pk)
    return redirect("imports", record.name)


@require_safe
def import_page(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show an import: its preview while it waits for settings, its progress, and what became of its records."""
    run = get_for(request, harness, ImportRun.objects.select_related("source"), pk=pk)
    record = get_harness_for(request, harness)
    if run.state == ImportState.PREVIEW:
        return _show_preview(request, run, record, read_options(run.options))
    is_running = run.state in import_queries.ACTIVE
    context = {
        "run": run,
        "rule": str(read_options(run.options).rule),
        "formats": sorted(run.formats.items()),
        "masked": sorted(run.masked.items()),
        "is_running": is_running,
        "is_silent": import_queries.is_silent(run),
        "is_upload": any(file.get("path") for file in run.files),
        "page": import_queries.list_problems(run, request.GET.get("page", 1)),
    }
    return refresh_when_done(request, running=is_running) or render_page(
        request, "import_run.html", context, record
    )


@require_POST
def preview(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show what an import with the settings of the form would look like."""
    run = get_for(request, harness, ImportRun, pk=pk, state=ImportState.PREVIEW)
    record = get_harness_for(request, harness)
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
    form = ImportSettingsForm(request.POST)
    try:
        options = read_settings(form)
    except LoopError as error:
        return _show_preview(request, run, record, read_options(run.options), str(error))
    source = _known_source(record, form)
    if source is not None and source.name != form.cleaned_data["shown_source"]:
        options = import_actions.options_for(source, only_failures=options.only_failures)
    return _show_preview(request, run, record, options, source_name=form.cleaned_data["source"])


def _known_source(harness: Harness, form: ImportSettingsForm) -> Source | None:
    return Source.objects.filter(harness=harness, name=form.cleaned_data["source"]).first()


def _show_preview(
    request: Request,
    run: ImportRun,
    harness: Harness,
    options: ImportOptions,
    problem: str = "",
    *,
    source_name: str = "",
) -> HttpResponse:
    shown = table = None
    try:
        shown = import_queries.preview_import(run, options)
        table = import_queries.look_at_columns(run, options)
    except LoopError as error:
        problem = problem or str(error)
    context: dict[str, Any] = {
        "run": run,
        "preview": shown,
        "table": table,
        "problem": problem,
        "options": options,
        "rule": show_rule(options.rule),
        "formats": FORMATS,
        "source_name": source_name,
        "sources": import_queries.list_sources(harness),
    }
    return render_page(request, "import_preview.html", context, harness)


@require_POST
def start(request: Request, harness: str, pk: int) -> HttpResponse:
    """Import the files of a preview with the settings of the form."""
    run = get_for(request, harness, ImportRun, pk=pk)
    record = get_harness_for(request, harness)
    form = ImportSettingsForm(request.POST)
    with told(request):
        actor = actor_of(request)
        actor.require(Role.DEVELOPER)
        options = read_settings(form)
        name = form.cleaned_data["source"]
        source = import_actions.ensure_source(actor, record, name) if name else None
        if source is not None and form.cleaned_data["remember"]:
            import_actions.remember_settings(actor, source, options)
        import_actions.start_import(actor, run, options, source=source)
    return redirect("import_run", harness, pk)


@require_POST
def resume(request: Request, harness: str, pk: int) -> HttpResponse:
    """Go on with an import that failed."""
    run = get_for(request, harness, ImportRun, pk=pk)
    with told(request):
        import_actions.resume_import(actor_of(request), run)
    return redirect("import_run", harness, pk)


@require_POST
def discard(request: Request, harness: str, pk: int) -> HttpResponse:
    """Throw away uploads that were not imported."""
    run = get_for(request, harness, ImportRun, pk=pk)
    with told(request, _("The files are thrown away.")):
        import_actions.discard_import(actor_of(request), run)
    return redirect("imports", harness)


@require_safe
def problems(request: Request, harness: str, pk: int) -> StreamingHttpResponse:
    """All rejected records of an import as a table."""
    run = get_for(request, harness, ImportRun, pk=pk)
    answer = StreamingHttpResponse(_write_problems(run), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="import-{run.pk}-problems.csv"'
    return answer


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _write_problems(run: ImportRun) -> Iterator[str]:
    writer = csv.writer(_Echo())
    # Spreadsheets take a file without it for another encoding.
    yield "\ufeff" + writer.writerow(["file", "line", "record", "reason"])
    for problem in run.problems.iterator():
        row = [_as_text(problem.file), problem.line, problem.number or "", _as_text(problem.reason)]
        yield str(writer.writerow(row))


def _as_text(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
