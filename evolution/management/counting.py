"""Numbers of things as commands say them, in the language that the command runs in."""

from django.utils.translation import ngettext


def count_cases(number: int) -> str:
    """1 case, 2 cases."""
    return ngettext("%(n)d case", "%(n)d cases", number) % {"n": number}


def count_open_cases(number: int) -> str:
    """1 open case, 2 open cases."""
    return ngettext("%(n)d open case", "%(n)d open cases", number) % {"n": number}


def count_failures(number: int) -> str:
    """1 failure, 2 failures."""
    return ngettext("%(n)d failure", "%(n)d failures", number) % {"n": number}


def count_clusters(number: int) -> str:
    """1 cluster, 2 clusters."""
    return ngettext("%(n)d cluster", "%(n)d clusters", number) % {"n": number}
