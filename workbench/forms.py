"""What pages may send. Forms check shape only: what is allowed is for the actions to say."""

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from evolution.errors import LoopError
from evolution.models import DatasetVersion, Harness
from evolution.queries.cases import UNCLUSTERED, CaseFilter
from evolution.queries.evaluations import list_dataset_versions
from evolution.queries.results import OUTCOMES, ResultFilter
from evolution.states import CaseState, Split
from harness_repo.runtime.faults import Fault, parse_fault

MAX_UPLOAD = 200 * 1024 * 1024
MAX_TEXT = 200_000


class CaseFilterForm(forms.Form):
    """The filters of the inbox; what makes no sense is left out."""

    state = forms.CharField(required=False, max_length=12)
    source = forms.CharField(required=False, max_length=64)
    category = forms.CharField(required=False, max_length=64)
    cluster = forms.RegexField(rf"^(\d{{1,9}}|{UNCLUSTERED})$", required=False)
    text = forms.CharField(required=False, max_length=200)

    def wanted(self) -> CaseFilter:
        """The filter; without a state in the query it is the open cases, with an empty one all of them."""
        self.full_clean()
        fields = {name: self.cleaned_data.get(name, "") for name in self.fields}
        if "state" not in self.data:
            fields["state"] = CaseState.OPEN
        return CaseFilter(**fields)


class ResultFilterForm(forms.Form):
    """The filters of an evaluation's results; what makes no sense is left out."""

    outcome = forms.ChoiceField(choices=[(name, name) for name in OUTCOMES], required=False)
    category = forms.CharField(required=False, max_length=64)
    status = forms.CharField(required=False, max_length=64)
    text = forms.CharField(required=False, max_length=200)

    def wanted(self) -> ResultFilter:
        """The filter that the query asks for; all results without one."""
        self.full_clean()
        return ResultFilter(**{name: self.cleaned_data.get(name, "") for name in self.fields})


class ImportForm(forms.Form):
    """Files of failures to import."""

    file = forms.FileField(allow_empty_file=True)
    everything = forms.BooleanField(required=False)

    def clean_file(self) -> Any:
        """Refuse what a web request should not carry; the command line takes any size."""
        upload = self.cleaned_data["file"]
        if upload.size > MAX_UPLOAD:
            raise forms.ValidationError(
                _("The file is larger than 200 MB; use the command import_cases for it.")
            )
        return upload


class ReasonForm(forms.Form):
    """A reason, where one is asked for."""

    reason = forms.CharField(required=False, max_length=2_000)


class NameForm(forms.Form):
    """A better name for something."""

    name = forms.CharField(max_length=200)


class DiagnosisForm(forms.Form):
    """A person's wording of a diagnosis; one proposed change a line."""

    hypothesis = forms.CharField(max_length=10_000)
    changes = forms.CharField(required=False, max_length=10_000)

    def change_lines(self) -> list[str]:
        """The proposed changes, without bullets and empty lines."""
        lines = self.cleaned_data["changes"].splitlines()
        return [line.strip().removeprefix("- ").strip() for line in lines if line.strip()]


class InstructionForm(forms.Form):
    """An instruction to the editor."""

    feedback = forms.CharField(max_length=10_000)


class FileForm(forms.Form):
    """A harness file edited by hand, and the head that the editor started from."""

    path = forms.CharField(max_length=300)
    content = forms.CharField(required=False, max_length=MAX_TEXT, strip=False)
    expected_head = forms.RegexField(r"^[0-9a-f]{40}$")

    def clean_content(self) -> str:
        """Browsers send CRLF; harness files have LF."""
        return str(self.cleaned_data["content"]).replace("\r\n", "\n")


class DecisionForm(forms.Form):
    """What to do with a step."""

    decision = forms.ChoiceField(
        choices=[(name, name) for name in ("promote", "revise", "roll_back", "stop")]
    )
    reason = forms.CharField(required=False, max_length=2_000)


class EvaluationForm(forms.Form):
    """What to evaluate, and on what. The page writes the fields itself; see parts/evaluation_form.html."""

    ref = forms.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$", initial="main")
    dataset_version = forms.ModelChoiceField(DatasetVersion.objects.none())
    splits = forms.MultipleChoiceField(
        choices=[(split, split.label) for split in (Split.DEV, Split.GUARD)], initial=[Split.DEV, Split.GUARD]
    )
    repeats = forms.IntegerField(min_value=1, max_value=20, initial=1)
    faults = forms.CharField(required=False, max_length=500)

    def __init__(self, harness: Harness, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ids = [version.pk for version in list_dataset_versions(harness)]
        field = self.fields["dataset_version"]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101  narrows the type
        field.queryset = DatasetVersion.objects.filter(pk__in=ids)

    def clean_faults(self) -> list[Fault]:
        """Read KIND:TOOL:RATE, divided by blanks or commas, as the command line has them."""
        try:
            return [parse_fault(text) for text in self.cleaned_data["faults"].replace(",", " ").split()]
        except ValueError as failure:
            raise forms.ValidationError(
                _("This can't be read: %(problem)s"), params={"problem": failure}
            ) from None


def read_reason(posted: QueryDict) -> str:
    """The reason that came with a button, perhaps empty; LoopError when it is too long or can't be stored."""
    return str(read_form(ReasonForm(posted))["reason"])


def read_form(form: forms.Form) -> dict[str, Any]:
    """What a form carries; LoopError, for `told` to tell, with the first thing wrong with it."""
    if not form.is_valid():
        raise LoopError(first_error(form))
    return form.cleaned_data


def first_error(form: forms.Form) -> str:
    """The first thing wrong with a form, for a message."""
    for name, errors in form.errors.items():
        return f"{name}: {errors[0]}" if name != "__all__" else str(errors[0])
    return ""
