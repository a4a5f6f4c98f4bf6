"""The filters of the audit trail, as a query sends them."""

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator

from evolution.queries.events import EventFilter
from workbench.forms import FIRST_DAY, LAST_DAY, MOST_ID

_DAYS = [MinValueValidator(FIRST_DAY), MaxValueValidator(LAST_DAY)]


class EventFilterForm(forms.Form):
    """What of the audit trail is wanted; what makes no sense is left out."""

    text = forms.CharField(required=False, max_length=150)
    actor = forms.CharField(required=False, max_length=150)
    verb = forms.CharField(required=False, max_length=64)
    kind = forms.CharField(required=False, max_length=32)
    target = forms.IntegerField(required=False, min_value=0, max_value=MOST_ID)
    since = forms.DateField(required=False, validators=_DAYS)
    until = forms.DateField(required=False, validators=_DAYS)

    def wanted(self) -> EventFilter:
        """The filter that the query asks for."""
        self.full_clean()
        given = {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
        renamed = {"kind": "target_kind", "target": "target_id"}
        return EventFilter(**{renamed.get(name, name): value for name, value in given.items()})
