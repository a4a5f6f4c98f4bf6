"""Answers with the whole of a value that a page shows only the beginning of."""

from typing import Any

from django.http import Http404, HttpResponse

from evolution.queries.case_page import find_value
from workbench.access import Request
from workbench.json_tree import render_whole, write_whole
from workbench.text_marks import spell


def answer_value(request: Request, record: dict[str, Any]) -> HttpResponse:
    """What stands in a record at ?path=: a part of the page for htmx, else a text of its own; 404 for nothing."""
    path = request.GET.get("path", "")
    try:
        value = find_value(record, path)
    except (LookupError, ValueError) as failure:
        raise Http404 from failure
    if request.htmx:
        return HttpResponse(render_whole(value, request.path, path))
    return HttpResponse(spell(write_whole(value)), content_type="text/plain; charset=utf-8")
