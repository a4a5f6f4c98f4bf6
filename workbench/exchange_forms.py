"""What the list of exchanges is narrowed to."""

from django import forms

from evolution.queries.exchanges import ExchangeFilter
from evolution.states import ExchangePurpose


class ExchangeFilterForm(forms.Form):
    """The filters; what makes no sense is left out."""

    purpose = forms.ChoiceField(required=False, choices=[("", ""), *ExchangePurpose.choices])
    model = forms.CharField(required=False, max_length=200)
    cluster = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    failed = forms.BooleanField(required=False)

    def wanted(self) -> ExchangeFilter:
        """The filter."""
        self.full_clean()
        given = self.cleaned_data
        return ExchangeFilter(
            purpose=given.get("purpose") or "",
            model=given.get("model") or "",
            cluster=given.get("cluster"),
            is_failed=bool(given.get("failed")),
        )
