"""What the models of the loop were asked and answered: the list with its sums, and one of them as a whole."""

from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from evolution.models import Exchange
from evolution.queries import exchanges as queries
from evolution.states import ExchangePurpose
from harness_repo.runtime.json_text import read_json
from workbench.access import Request, get_for, get_harness_for
from workbench.exchange_forms import ExchangeFilterForm
from workbench.json_tree import write_json
from workbench.rendering import render_page
from workbench.shown_view import view_shown
from workbench.whole_values import answer_value


def _get(request: Request, harness: str, pk: int) -> Exchange:
    related = Exchange.objects.select_related("harness", "cluster", "proposal", "job")
    return get_for(request, harness, related.defer("cluster__centroid"), pk=pk)


@require_safe
def exchange_list(request: Request, harness: str) -> HttpResponse:
    """List what was asked, newest first, with what it took by model."""
    record = get_harness_for(request, harness)
    form = ExchangeFilterForm(request.GET)
    wanted = form.wanted()
    context = {
        "page": queries.list_exchanges(record, wanted, request.GET.get("page", 1)),
        "spending": queries.sum_spending(record, wanted),
        "wanted": wanted,
        "purposes": ExchangePurpose.choices,
        "models": queries.list_model_names(record),
        "is_narrowed": bool(wanted.model or wanted.is_failed or wanted.cluster is not None),
    }
    return render_page(request, "exchanges.html", context, record)


@require_safe
def exchange_page(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show one question with its answers; long texts by their beginning."""
    exchange = _get(request, harness, pk)
    context: dict[str, Any] = {
        "exchange": exchange,
        "shown": view_shown(exchange),
        "messages_sent": [row for row in _rows(exchange.request.get("messages")) if isinstance(row, dict)],
        "replies": list(zip(_rows(exchange.replies), _read_replies(exchange), strict=True)),
        "diagnoses": exchange.diagnoses.order_by("rank", "-pk"),
        "value_url": reverse("exchange_value", args=[harness, pk]),
        "others": list(_list_others(exchange)),
    }
    return render_page(request, "exchange.html", context, exchange.harness)


@require_safe
def exchange_value(request: Request, harness: str, pk: int) -> HttpResponse:
    """The whole of what the page shows the beginning of; ?path= is a JSON pointer into the record."""
    exchange = _get(request, harness, pk)
    return answer_value(request, _describe(exchange) | {"answers": _read_replies(exchange)})


@require_safe
def exchange_raw(request: Request, harness: str, pk: int) -> HttpResponse:
    """Question and answers as JSON, to look at or, with ?download, to keep."""
    exchange = _get(request, harness, pk)
    answer = HttpResponse(write_json(_describe(exchange)), content_type="application/json")
    kept = "attachment" if "download" in request.GET else "inline"
    answer.headers["Content-Disposition"] = f'{kept}; filename="exchange-{exchange.pk}.json"'
    return answer


def _describe(exchange: Exchange) -> dict[str, Any]:
    return {
        "id": exchange.pk,
        "purpose": exchange.purpose,
        "cluster": exchange.cluster.number if exchange.cluster else None,
        "proposal": exchange.proposal_id,
        "model": exchange.model,
        "asked_by": exchange.created_by,
        "asked_at": exchange.created_at.isoformat(),
        "seconds": exchange.seconds,
        "prompt_tokens": exchange.prompt_tokens,
        "completion_tokens": exchange.completion_tokens,
        "cached_tokens": exchange.cached_tokens,
        "cost": None if exchange.cost is None else float(exchange.cost),
        "currency": exchange.currency,
        "error": exchange.error,
        "shown": exchange.shown,
        "request": exchange.request,
        "replies": exchange.replies,
    }


def _read_replies(exchange: Exchange) -> list[Any]:
    """The JSON that each reply holds; None where it holds none."""
    return [
        _read(row.get("content", "")) if isinstance(row, dict) else None for row in _rows(exchange.replies)
    ]


def _read(content: Any) -> Any:
    try:
        return read_json(str(content))
    except ValueError:
        return None


def _rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _list_others(exchange: Exchange) -> Any:
    """Other questions about the same cluster or proposal, to compare with."""
    others = Exchange.objects.filter(harness=exchange.harness, purpose=exchange.purpose).exclude(
        pk=exchange.pk
    )
    if exchange.purpose == ExchangePurpose.DIAGNOSIS and exchange.cluster_id:
        others = others.filter(cluster=exchange.cluster_id)
    elif exchange.proposal_id:
        others = others.filter(proposal=exchange.proposal_id)
    else:
        others = others.none()
    return others.defer(*queries.HEAVY).order_by("-pk")[:12]
