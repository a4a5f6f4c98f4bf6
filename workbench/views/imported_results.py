"""Results that were made elsewhere, uploaded on the list of evaluations."""

from pathlib import Path

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evolution.actions.imported_results import import_results
from evolution.adapters.formats.detect import show_name
from evolution.adapters.results.detect import Source
from evolution.loop.imported_results import ImportedResults
from workbench.access import Request, actor_of, get_harness_for, told
from workbench.forms import ResultsImportForm, first_error

MOST_SHOWN = 5


@require_POST
def upload(request: Request, harness: str) -> HttpResponse:
    """Take the file in as an evaluation of this harness, and show that; what is wrong with the file is told."""
    record = get_harness_for(request, harness)
    form = ResultsImportForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, first_error(form))
        return redirect("evaluations", record.name)
    fields = form.cleaned_data
    file = fields["file"]
    source = Source(show_name(Path(file.name)), file.read())
    with told(request):
        imported = import_results(
            actor_of(request), source, harness_name=record.name, ref=fields["ref"], wanted=form.wanted()
        )
        _tell(request, imported)
        return redirect("evaluation", record.name, imported.evaluation.pk)
    return redirect("evaluations", record.name)


def _tell(request: Request, imported: ImportedResults) -> None:
    if not imported.is_new:
        messages.info(request, _("These results had been imported before."))
    for problem in imported.problems[:MOST_SHOWN]:
        messages.warning(request, _("left out: %(problem)s") % {"problem": problem})
    if (more := len(imported.problems) - MOST_SHOWN) > 0:
        messages.warning(request, _("and %(count)s more") % {"count": more})
