"""What people type into the search of the inbox, and what it means for the text of a case."""

import re

from django.db.models import F, Q, Value
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan

from evolution.loop.search_text import fold

# What stands between quotation marks, straight, curly or Chinese, is one term; else a term ends at a space.
_TERM = re.compile('["\u201c\u201d\u300c]([^"\u201c\u201d\u300d]*)["\u201c\u201d\u300d]|(\\S+)')
MOST_TERMS = 12


def split_terms(text: str) -> list[str]:
    """The distinct terms of a search, folded like what is searched; each of them has to be in a case's text."""
    found = (fold(match[1] if match[1] is not None else match[2]) for match in _TERM.finditer(text))
    terms = dict.fromkeys(term for term in found if term)
    # One that is part of another says nothing.
    return [term for term in terms if not any(term != other and term in other for other in terms)][
        :MOST_TERMS
    ]


def containing(terms: list[str], column: str) -> Q:
    """The condition that a text has all terms in it, whatever the database takes for letters or order."""
    condition = Q()
    for term in terms:
        condition &= Q(GreaterThan(StrIndex(F(column), Value(term)), 0))
    return condition
