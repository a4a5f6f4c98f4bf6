"""The address of the inbox: which of its parameters say what is listed, and how they are put into words."""

from dataclasses import fields

from django.http import QueryDict
from django.utils.translation import gettext, gettext_noop

from evolution.queries.case_filters import CaseFilter

# What narrows the list, in the order of the page.
FILTERS = tuple(field.name for field in fields(CaseFilter) if field.name != "upto")
# Those that stand in the second row of the filters, which is folded away while none of them is used.
FURTHER = ("tag", "assignee", "language", "version", "imported", "lowest", "highest", "since", "until")
# What detect_language tells apart.
LANGUAGES = ("zh", "en")
NAMES = {
    "state": gettext_noop("State"),
    "source": gettext_noop("Source"),
    "category": gettext_noop("Category"),
    "cluster": gettext_noop("Cluster"),
    "text": gettext_noop("Search"),
    "tag": gettext_noop("Tag"),
    "assignee": gettext_noop("Assignee"),
    "language": gettext_noop("Language"),
    "version": gettext_noop("Version"),
    "imported": gettext_noop("Import"),
    "lowest": gettext_noop("Score from"),
    "highest": gettext_noop("Score to"),
    "since": gettext_noop("Added from"),
    "until": gettext_noop("Added until"),
}


def list_query(given: QueryDict) -> str:
    """The query that gives the same list from its beginning: filters alone, nothing else that the address carries."""
    kept = QueryDict(mutable=True)
    for name in FILTERS:
        # An empty state says something: all states.
        if given.get(name) or (name == "state" and name in given):
            kept[name] = given.get(name, "")
    return kept.urlencode()


def list_narrowing(wanted: CaseFilter) -> list[tuple[str, str, str]]:
    """The filters in use but for the first row of the page: name of the parameter, its label, and the value."""
    used = [(name, getattr(wanted, name)) for name in FURTHER]
    return [(name, gettext(NAMES[name]), str(value)) for name, value in used if value not in {None, ""}]
