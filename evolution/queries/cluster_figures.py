"""What a list of clusters says of each: sizes of all of them, and for those of one page trend, versions, exemplars."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum, Window
from django.db.models.functions import Coalesce, RowNumber, TruncDate
from django.utils import timezone

from evolution.models import Cluster, FailureCase, Harness
from evolution.states import CaseState

# Days of the small chart, and those that are compared: the last seven with the seven before.
DAYS = 28
WEEK = 7
# Values of a column that a row shows.
SHOWN = 3
EXEMPLARS = 2
# A failure counts on the day it happened, or came in where the source does not say.
AT = Coalesce("happened_at", "created_at")


@dataclass(frozen=True)
class Size:
    """How many failures a cluster has."""

    open_cases: int = 0
    all_cases: int = 0
    # with every time that an identical failure was seen
    seen: int = 0
    first: datetime | None = None
    last: datetime | None = None
    # of the last seven days, and of the seven before
    week: int = 0
    week_before: int = 0

    @property
    def growth(self) -> int:
        """How many more the last seven days had than the seven before."""
        return self.week - self.week_before


@dataclass(frozen=True)
class ValueCount:
    """A value, how many members have it, and their share of all members, 0-1."""

    value: str
    count: int
    share: float


@dataclass
class Spread:
    """How the members of a cluster spread over days, categories and versions; all of them, whatever their state."""

    # failures of each of the last DAYS days, the oldest first
    daily: list[int] = field(default_factory=lambda: [0] * DAYS)
    categories: list[ValueCount] = field(default_factory=list)
    versions: list[ValueCount] = field(default_factory=list)
    exemplars: list[FailureCase] = field(default_factory=list)

    @property
    def is_recent(self) -> bool:
        """Whether any of the failures are of those days."""
        return any(self.daily)


def measure_sizes(harness: Harness) -> dict[int, Size]:
    """The sizes of all clusters of a harness that have failures, by the cluster's id."""
    members = FailureCase.objects.filter(harness=harness, cluster__isnull=False)
    return _sizes(members)


def measure_size(cluster: Cluster) -> Size:
    """The size of one cluster."""
    return _sizes(FailureCase.objects.filter(cluster=cluster)).get(cluster.pk, Size())


def _sizes(members: QuerySet[FailureCase]) -> dict[int, Size]:
    today = timezone.localdate()
    week, before = _midnight(today, 1 - WEEK), _midnight(today, 1 - 2 * WEEK)
    counted = (
        members.order_by()
        .annotate(at=AT)
        .values("cluster_id")
        .annotate(
            open_cases=Count("pk", filter=Q(state=CaseState.OPEN)),
            all_cases=Count("pk"),
            seen=Sum("count"),
            first=Min("at"),
            last=Max("at"),
            week=Count("pk", filter=Q(at__gte=week)),
            week_before=Count("pk", filter=Q(at__gte=before, at__lt=week)),
        )
    )
    rows: Any = counted.values_list("cluster_id", *_SIZE)
    return {pk: Size(*values) for pk, *values in rows}


_SIZE = ("open_cases", "all_cases", "seen", "first", "last", "week", "week_before")


def _midnight(day: date, days: int) -> datetime:
    return timezone.make_aware(datetime.combine(day + timedelta(days=days), datetime.min.time()))


def measure_spreads(clusters: Sequence[Cluster], sizes: dict[int, Size]) -> dict[int, Spread]:
    """The spreads of some clusters, by id, in a query for each part."""
    spreads = {cluster.pk: Spread() for cluster in clusters}
    members = FailureCase.objects.filter(cluster__in=list(spreads)).order_by()
    _count_days(members, spreads)
    for name, column in (("categories", "category"), ("versions", "harness_commit")):
        for pk, counts in _count_values(members, column, sizes).items():
            setattr(spreads[pk], name, counts)
    for case in _strongest(members):
        spreads[case.cluster_id or 0].exemplars.append(case)
    return spreads


def count_days(cluster: Cluster) -> dict[date, tuple[int, int]]:
    """By day, how many members that happened on it are open, and how many are not; days without any are left out."""
    rows = FailureCase.objects.filter(cluster=cluster).order_by().annotate(day=TruncDate(AT)).values("day")
    is_open = Q(state=CaseState.OPEN)
    counted = rows.annotate(is_open=Count("pk", filter=is_open), closed=Count("pk", filter=~is_open))
    return {row["day"]: (row["is_open"], row["closed"]) for row in counted}


def _count_days(members: QuerySet[FailureCase], spreads: dict[int, Spread]) -> None:
    begin = timezone.localdate() - timedelta(days=DAYS - 1)
    rows = members.annotate(at=AT).filter(at__gte=_midnight(begin, 0)).annotate(day=TruncDate("at"))
    for pk, day, count in (
        rows.values("cluster_id", "day").annotate(n=Count("pk")).values_list("cluster_id", "day", "n")
    ):
        # What is dated in the future is not of the last days.
        if (place := (day - begin).days) < DAYS:
            spreads[pk].daily[place] = count


def _count_values(
    members: QuerySet[FailureCase], column: str, sizes: dict[int, Size]
) -> dict[int, list[ValueCount]]:
    found: dict[int, list[ValueCount]] = defaultdict(list)
    counted = members.exclude(**{column: ""}).values("cluster_id", column).annotate(n=Count("pk"))
    rows: Any = counted.order_by("-n", column).values_list("cluster_id", column, "n")
    for pk, value, count in rows:
        found[pk].append(ValueCount(value, count, count / max(sizes.get(pk, Size()).all_cases, 1)))
    return found


def _strongest(members: QuerySet[FailureCase]) -> list[FailureCase]:
    """Of each cluster the open members nearest to its middle, of several with one title the first."""
    place = Window(
        RowNumber(),
        partition_by=[F("cluster_id")],
        order_by=[F("is_pinned").asc(), F("strength").desc(nulls_last=True), F("id").asc()],
    )
    rows = members.filter(state=CaseState.OPEN).annotate(nth=place).filter(nth__lte=4 * EXEMPLARS)
    shown: dict[tuple[int | None, str], FailureCase] = {}
    case: FailureCase
    for case in rows.only("title", "cluster_id", "harness_id").order_by("cluster_id", "nth"):
        shown.setdefault((case.cluster_id, case.title), case)
    counts: dict[int | None, int] = defaultdict(int)
    kept: list[FailureCase] = []
    for case in shown.values():
        counts[case.cluster_id] += 1
        if counts[case.cluster_id] <= EXEMPLARS:
            kept.append(case)
    return kept
