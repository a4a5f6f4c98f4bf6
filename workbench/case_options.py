"""The options of the filters of the inbox as HTML, kept until something happens on the harness that may change them."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import NamedTuple

from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from evolution.models import Harness, SavedView
from evolution.queries.case_facets import CaseChoices, list_choices, newest_change
from evolution.queries.case_filters import UNASSIGNED, UNCLUSTERED, CaseFilter
from evolution.queries.saved_views import list_views
from evolution.states import CaseState
from workbench.templatetags.workbench import source_name
from workbench.text_marks import spell

# Seconds for which options are kept at most.
KEPT = 60


class Option(NamedTuple):
    """A value and its label, both as HTML."""

    value: str
    label: str


@dataclass(frozen=True)
class Surroundings:
    """What stands around the rows of the list, apart from what is chosen."""

    options: dict[str, list[Option]]
    views: list[SavedView]


def read_surroundings(harness: Harness, owner: str) -> Surroundings:
    """What the filters of a harness offer, and the views of a person; read anew once something has happened."""
    return _read(
        harness.pk, owner, get_language() or "", newest_change(harness), int(time.monotonic() // KEPT)
    )


@lru_cache(maxsize=64)
def _read(harness_id: int, owner: str, _language: str, _newest: str, _time: int) -> Surroundings:
    harness = Harness.objects.get(pk=harness_id)
    return Surroundings(_options(list_choices(harness)), list_views(harness, owner))


def draw_options(options: dict[str, list[Option]], wanted: CaseFilter) -> dict[str, SafeString]:
    """The options of each filter by its name, what is chosen marked, and added where it is none of them."""
    return {name: _draw(offered, str(_chosen(wanted, name))) for name, offered in options.items()}


def _chosen(wanted: CaseFilter, name: str) -> object:
    value = getattr(wanted, name, "")
    return "" if value is None else value


def _draw(options: list[Option], chosen: str) -> SafeString:
    marked = escape(chosen)
    drawn = [
        f'<option value="{value}"{" selected" if chosen and value == marked else ""}>{label}</option>'
        for value, label in options
    ]
    if chosen and all(value != marked for value, _label in options):
        drawn.append(f'<option value="{marked}" selected>{escape(spell(chosen))}</option>')
    return mark_safe("".join(drawn))  # noqa: S308  values and labels are escaped


def _options(choices: CaseChoices) -> dict[str, list[Option]]:
    runs = (
        (str(run.pk), f"#{run.pk} · {timezone.localtime(run.created_at):%Y-%m-%d %H:%M}")
        for run in choices.imports
    )
    clusters = ((str(one.number), f"{one.number} · {one.name[:40]}") for one in choices.clusters)
    return {
        "state": _label(CaseState.choices),
        "source": _label((value, source_name(value)) for value in choices.sources),
        "category": _label((value, value) for value in choices.categories),
        "cluster": _label([(UNCLUSTERED, _("unclustered")), *clusters]),
        "assignee": _label(
            [(UNASSIGNED, _("nobody")), *((name, name) for name in choices.people if name != UNASSIGNED)]
        ),
        "language": _label((value, value) for value in ("zh", "en")),
        "version": _label((value, value[:8]) for value in choices.versions),
        "imported": _label(runs),
        "tag": _label((value, value) for value in choices.tags),
        "person": _label((name, name) for name in choices.people),
    }


def _label(pairs: Iterable[tuple[str, object]]) -> list[Option]:
    return [Option(escape(value), escape(spell(label))) for value, label in pairs]
