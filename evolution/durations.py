"""Times in words, for pages and commands alike."""

from django.utils.translation import gettext as _


def say_seconds(seconds: float) -> str:
    """A time of its two largest units: 1 h 20 min, 45 s; below ten seconds with a decimal, below one in ms."""
    if seconds < 1:
        return _("%(n)s ms") % {"n": round(1000 * seconds)}
    if seconds < 10:
        return _("%(n)s s") % {"n": f"{seconds:.1f}"}
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return _("%(h)s h %(min)s min") % {"h": hours, "min": minutes}
    return _("%(min)s min %(s)s s") % {"min": minutes, "s": rest} if minutes else _("%(n)s s") % {"n": rest}
