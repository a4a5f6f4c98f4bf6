"""Beside the loop: kept answers of model calls that are no longer of use are thrown away."""

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, F, Func, IntegerField, QuerySet, Sum
from django.utils import timezone

from evolution.models import ModelCall

# In one transaction; short enough to hold nobody up.
AT_ONCE = 5000


@dataclass(frozen=True)
class Pruned:
    """How many kept answers there were, and the bytes that their replies took up in the database."""

    calls: int = 0
    size: int = 0


def select_calls(unused_days: float = 0, model: str = "") -> QuerySet[ModelCall]:
    """Kept answers whose last use is so long ago, as far as it is known (to within a day); of one model, if named."""
    calls = ModelCall.objects.filter(used_at__lte=timezone.now() - timedelta(days=unused_days))
    return calls.filter(model=model) if model else calls


def count_calls(calls: QuerySet[ModelCall]) -> Pruned:
    """What deleting them would free."""
    size = Func(F("reply"), function="pg_column_size", output_field=IntegerField())
    row = calls.aggregate(calls=Count("pk"), size=Sum(size))
    return Pruned(row["calls"], row["size"] or 0)


def prune_calls(calls: QuerySet[ModelCall]) -> Pruned:
    """Delete them, some thousand at a time; one that is used meanwhile stays."""
    gone, size = 0, 0
    while True:
        batch = list(calls.values_list("pk", flat=True)[:AT_ONCE])
        if not batch:
            return Pruned(gone, size)
        size += count_calls(calls.filter(pk__in=batch)).size
        deleted, _ = calls.filter(pk__in=batch).delete()
        gone += deleted
