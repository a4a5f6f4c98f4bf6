"""What the models of the loop were asked, with time and cost: the list, its sums, and one of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Avg, Count, F, Func, IntegerField, Q, QuerySet, Sum

from evolution.models import Exchange, FailureCase, Harness, Proposal

PAGE_SIZE = 50
# What a list does not need; one of them can have megabytes.
HEAVY = ("request", "replies", "shown")


@dataclass(frozen=True)
class ExchangeFilter:
    """What the list is narrowed to."""

    # one of ExchangePurpose
    purpose: str = ""
    model: str = ""
    # of a cluster
    cluster: int | None = None
    # those that nothing came of
    is_failed: bool = False


@dataclass(frozen=True)
class Spending:
    """What one model took for one purpose."""

    model: str
    purpose: str
    count: int
    # that nothing came of
    failed: int
    tokens: int
    # of those whose price is known; None without any
    cost: Decimal | None
    unpriced: int
    currency: str
    # of one, on average
    seconds: float

    @property
    def cost_of_one(self) -> Decimal | None:
        """On average, of those whose price is known."""
        return self.cost / (self.count - self.unpriced) if self.cost is not None else None


def _filter(harness: Harness, wanted: ExchangeFilter) -> QuerySet[Exchange]:
    exchanges = Exchange.objects.filter(harness=harness)
    if wanted.purpose:
        exchanges = exchanges.filter(purpose=wanted.purpose)
    if wanted.model:
        exchanges = exchanges.filter(model=wanted.model)
    if wanted.cluster is not None:
        about = Q(cluster__number=wanted.cluster) | Q(proposal__diagnosis__cluster__number=wanted.cluster)
        exchanges = exchanges.filter(about)
    return exchanges.exclude(error="") if wanted.is_failed else exchanges


def list_exchanges(harness: Harness, wanted: ExchangeFilter, page: Any = 1) -> "Page[Any]":
    """A page of them, newest first, each with `tries`, the number of its replies."""
    found = _filter(harness, wanted).defer(*HEAVY).select_related("cluster", "proposal")
    found = found.defer("cluster__centroid").annotate(tries=count_replies()).order_by("-pk")
    return Paginator(found, PAGE_SIZE).get_page(page)


def count_replies() -> Func:
    """How often the model answered; more than once where it was told what was wrong."""
    return Func(F("replies"), function="jsonb_array_length", output_field=IntegerField())


def sum_spending(harness: Harness, wanted: ExchangeFilter) -> list[Spending]:
    """What the filtered ones took, by purpose, model and currency; the most asked first."""
    grouped = _filter(harness, wanted).order_by().values("model", "purpose", "currency")
    rows = grouped.annotate(
        count=Count("pk"),
        failed=Count("pk", filter=~Q(error="")),
        tokens=Sum(F("prompt_tokens") + F("completion_tokens")),
        total=Sum("cost"),
        unpriced=Count("pk", filter=Q(cost=None)),
        mean=Avg("seconds"),
    )
    found = [
        Spending(
            model=row["model"],
            purpose=row["purpose"],
            count=row["count"],
            failed=row["failed"],
            tokens=row["tokens"],
            cost=row["total"],
            unpriced=row["unpriced"],
            currency=row["currency"],
            seconds=row["mean"],
        )
        for row in rows
    ]
    return sorted(found, key=lambda one: (one.purpose, -one.count, one.model))


def list_model_names(harness: Harness, purpose: str = "") -> list[str]:
    """The models that were asked so far."""
    asked = Exchange.objects.filter(harness=harness)
    if purpose:
        asked = asked.filter(purpose=purpose)
    return list(asked.order_by("model").values_list("model", flat=True).distinct())


def name_shown_cases(harness: Harness, ids: Iterable[Any]) -> dict[int, str]:
    """Titles of failures by id; without those that are gone."""
    known = [pk for pk in ids if isinstance(pk, int)]
    cases = FailureCase.objects.filter(harness=harness, pk__in=known)
    return dict(cases.values_list("pk", "title"))


def list_drafting(proposal: Proposal) -> list[Exchange]:
    """What its drafter was asked, the first draft first, each with `tries`."""
    exchanges = proposal.exchanges.defer("request", "replies").annotate(tries=count_replies())
    return list(exchanges.order_by("pk"))


def list_alternatives(proposal: Proposal) -> list[Proposal]:
    """Other drafts of the same diagnosis, newest first."""
    if proposal.diagnosis_id is None:
        return []
    others = Proposal.objects.filter(diagnosis=proposal.diagnosis_id).exclude(pk=proposal.pk)
    return list(others.only("pk", "title", "model", "state").order_by("-pk"))


@dataclass(frozen=True)
class Effort:
    """What several questions took together."""

    exchanges: list[Exchange]

    @property
    def seconds(self) -> float:
        """From question to answer."""
        return sum(exchange.seconds for exchange in self.exchanges)

    @property
    def tokens(self) -> int:
        """Read and written."""
        return sum(exchange.prompt_tokens + exchange.completion_tokens for exchange in self.exchanges)

    @property
    def cost(self) -> Decimal | None:
        """None where that of one is unknown, or where there is none."""
        costs = [exchange.cost for exchange in self.exchanges]
        return (
            sum((cost for cost in costs if cost is not None), Decimal(0))
            if costs and None not in costs
            else None
        )

    @property
    def currency(self) -> str:
        """Of the cost."""
        return self.exchanges[0].currency if self.exchanges else ""
