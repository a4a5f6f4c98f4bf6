"""The plainest list of cases that Django gives: what the inbox is measured against, in the same process."""

from functools import cache
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.template import engines
from django.urls import include, path

from evolution.models import FailureCase

ROWS = """<table>{% for case in page %}<tr><td><a href="/cases/{{ case.pk }}/">{{ case.title }}</a></td>
<td>{{ case.symptom|truncatechars:240 }}</td><td>{{ case.state }}</td><td>{{ case.category }}</td>
<td>{{ case.cluster.name }}</td><td>{{ case.source }}</td><td>{{ case.count }}</td><td>{{ case.created_at }}</td></tr>
{% endfor %}</table>"""
COLUMNS = ("title", "symptom", "state", "category", "source", "count", "created_at", "cluster__name")


@cache
def _template() -> Any:
    return engines["django"].from_string(ROWS)


def keyset(request: HttpRequest) -> HttpResponse:
    """50 open cases from an id on."""
    cases = FailureCase.objects.filter(harness__name="live_commerce", state="open").order_by("-id")
    if before := request.GET.get("before"):
        cases = cases.filter(pk__lt=before)
    return _render(request, cases.select_related("cluster").only(*COLUMNS)[:51])


def counted(request: HttpRequest) -> HttpResponse:
    """The same by Django's paginator: COUNT and OFFSET."""
    cases = FailureCase.objects.filter(harness__name="live_commerce", state="open").order_by("-id")
    cases = cases.select_related("cluster").only(*COLUMNS)
    return _render(request, Paginator(cases, 50).get_page(request.GET.get("page", 1)))


def _render(request: HttpRequest, page: object) -> HttpResponse:
    return HttpResponse(_template().render({"page": page}, request))


urlpatterns = [
    path("bare/keyset/", keyset),
    path("bare/counted/", counted),
    path("", include("workbench.urls")),
]
