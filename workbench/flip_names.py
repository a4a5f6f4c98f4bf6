"""The names of flips in the reader's language, in the order in which people want to see them."""

from django.utils.translation import gettext as _

ORDER = ("broken", "fixed", "error", "missing", "still_failing", "still_passing")


def name_flip(flip: str) -> str:
    """What a flip is called."""
    names = {
        "fixed": _("fixed"),
        "broken": _("broken"),
        "still_passing": _("still passing"),
        "still_failing": _("still failing"),
        "missing": _("missing"),
        "error": _("error"),
    }
    return names.get(flip, flip)


def name_counts(counts: dict[str, int]) -> list[tuple[str, str, int]]:
    """Flip, its name, and how many cases have it, for those that occur."""
    return [(flip, name_flip(flip), counts[flip]) for flip in ORDER if counts.get(flip)]
