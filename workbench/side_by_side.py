"""Which two records a page sets side by side."""

from collections.abc import Sequence

from django.http import Http404


def choose_two(ids: Sequence[int], first: int | None, second: int | None) -> tuple[int, int] | None:
    """The two that were chosen, out of `ids`; what was not chosen is the earliest in that order. 404 for others.

    Without any choice the second of `ids` comes first: lists have the newest first, and people read from old to new.
    None when there are no two.
    """
    if any(pk is not None and pk not in ids for pk in (first, second)):
        raise Http404
    if first is None and second is None:
        return (ids[1], ids[0]) if len(ids) > 1 else None
    other = next((pk for pk in ids if pk not in (first, second)), None)
    left, right = first or other, second or other
    return (left, right) if left is not None and right is not None and left != right else None
