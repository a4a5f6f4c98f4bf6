"""The rows of the list of cases as HTML. Written here and not in the template: a list of 50 is drawn in a third of the
time, and the list is the page that has to be quick.
"""

from collections.abc import Iterable
from functools import cache
from html import escape

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from evolution.models import FailureCase, Harness
from workbench.templatetags.workbench import icon, pill, score, source_name, when
from workbench.text_marks import reveal, spell

# Of a symptom in the list.
MOST_SYMPTOM = 240


class RowWriter:
    """Writes rows with what all of them share: addresses, labels, whether they can be chosen."""

    def __init__(self, harness: Harness, query: str, *, may_choose: bool, all_chosen: bool) -> None:
        # Addresses differ in the number alone.
        self.case_url = reverse("case", args=[harness.name, 0]).removesuffix("0/")
        self.cluster_url = reverse("cluster", args=[harness.name, 0]).removesuffix("0/")
        self.query = escape(f"?{query}") if query else ""
        self.may_choose = may_choose
        self.ticked = " checked disabled" if all_chosen else ""
        # The number stands in the middle of a sentence in some languages.
        self.choose = escape(_("Choose case %(n)s"))
        self.score, self.seen = escape(_("Score")), escape(_("Seen"))
        self.person = icon("person")
        # Few are different in a list.
        self._category = cache(lambda category: _tag(category) if category else "")
        self._source = cache(lambda source: reveal(source_name(source)))
        self._score = cache(lambda value: "" if value is None else escape(score(value)))
        self.pills: dict[str, SafeString] = {}

    def write(self, cases: Iterable[FailureCase]) -> SafeString:
        """All rows, one after another."""
        return mark_safe("\n".join(map(self._row, cases)))  # noqa: S308  every value in a row is escaped

    def _row(self, case: FailureCase) -> str:
        return (
            f"<tr data-row>{self._pick(case) if self.may_choose else ''}"
            f'<td class="main"><a href="{self.case_url}{case.pk}/{self.query}" class="wrap">{reveal(case.title)}</a>'
            f'<div class="muted small clamp">{reveal(shorten(case.symptom))}</div>{self._kept(case)}</td>'
            f"<td>{self._state(case)}</td>"
            f"<td>{self._category(case.category)}</td>"
            f"<td>{self._cluster(case)}</td>"
            f'<td class="small muted"><span class="wrap">{self._source(case.source)}</span></td>'
            f'<td class="num" data-label="{self.score}">{self._score(case.score)}</td>'
            f'<td class="num" data-label="{self.seen}">{case.count}×</td>'
            f'<td class="small muted">{when(case.created_at)}</td></tr>'
        )

    def _pick(self, case: FailureCase) -> str:
        label = self.choose % {"n": case.pk}
        return (
            '<td class="pick"><input type="checkbox" class="form-check-input" name="ids" form="bulk" '
            f'value="{case.pk}" aria-label="{label}"{self.ticked}></td>'
        )

    def _kept(self, case: FailureCase) -> str:
        """What people keep on the case: tags, and whose it is."""
        name = case.assignee.get_username() if case.assignee else ""
        if not case.tags and not name:
            return ""
        person = f'<span class="small muted">{self.person} {reveal(name)}</span>' if name else ""
        return f'<div class="tags">{"".join(map(_tag, case.tags))}{person}</div>'

    def _state(self, case: FailureCase) -> SafeString:
        if case.state not in self.pills:
            self.pills[case.state] = pill(case.get_state_display(), case.state)
        return self.pills[case.state]

    def _cluster(self, case: FailureCase) -> str:
        if case.cluster is None:
            return ""
        number, name = case.cluster.number, escape(spell(case.cluster.name))
        return f'<a href="{self.cluster_url}{number}/" title="{name}">#{number}</a>'


def shorten(text: str) -> str:
    """The beginning of a text that is long."""
    return text if len(text) <= MOST_SYMPTOM else f"{text[: MOST_SYMPTOM - 1]}…"


def _tag(text: str) -> str:
    return f'<span class="tag">{reveal(text)}</span>'
