"""What pages may send. Forms check shape only: what is allowed is for the actions to say."""

from decimal import Decimal
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from evolution.adapters.results.wanted import Wanted
from evolution.errors import LoopError
from evolution.models import DatasetVersion, Harness
from evolution.queries.cases import UNCLUSTERED, CaseFilter
from evolution.queries.evaluations import list_dataset_versions
from evolution.queries.results import OUTCOMES, ResultFilter
from evolution.states import CaseState, Split
from harness_repo.runtime.faults import Fault, parse_fault

MAX_UPLOAD = 200 * 1024 * 1024
MAX_TEXT = 200_000
# Of a number that is written without an exponent.
MOST = 10**12


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
    error_kind = forms.CharField(required=False, max_length=64)
    text = forms.CharField(required=False, max_length=200)

    def wanted(self) -> ResultFilter:
        """The filter that the query asks for; all results without one."""
        self.full_clean()
        return ResultFilter(**{name: self.cleaned_data.get(name, "") for name in self.fields})


class UploadForm(forms.Form):
    """A file to import; the command line takes any size."""

    # what takes larger files
    command = "import_cases"

    file = forms.FileField(allow_empty_file=True)

    def clean_file(self) -> Any:
        """Refuse what a web request should not carry."""
        upload = self.cleaned_data["file"]
        if upload.size > MAX_UPLOAD:
            text = _("The file is larger than 200 MB; use the command %(command)s for it.")
            raise forms.ValidationError(text % {"command": self.command})
        return upload


class ImportForm(UploadForm):
    """Files of failures to import."""

    everything = forms.BooleanField(required=False)


class ResultsImportForm(UploadForm):
    """A file of results that were made elsewhere, and how it is to be read."""

    command = "import_results"

    ref = forms.CharField(required=False, max_length=200)
    variant = forms.CharField(required=False, max_length=300)
    score = forms.CharField(required=False, max_length=300)
    threshold = forms.FloatField(required=False, min_value=0.01, max_value=1)
    full_marks = forms.FloatField(required=False, min_value=0.01, max_value=MOST)
    dataset = forms.CharField(required=False, max_length=64)

    def wanted(self) -> Wanted:
        """How the file is to be read; its own word counts where a field is empty."""
        fields = self.cleaned_data
        return Wanted(
            dataset=fields["dataset"],
            variant=fields["variant"],
            score=fields["score"],
            threshold=fields["threshold"] or 1.0,
            full_marks=fields["full_marks"] or 1.0,
        )


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


REF = r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$"


class BudgetForm(forms.Form):
    """What an evaluation may use at most; what is left empty has no limit."""

    max_calls = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    max_tokens = forms.IntegerField(required=False, min_value=1, max_value=MOST)
    max_money = forms.DecimalField(required=False, min_value=Decimal("0.000001"), max_value=MOST)
    max_seconds = forms.IntegerField(required=False, min_value=1, max_value=10 * 365 * 86_400)

    def budget(self) -> dict[str, Any]:
        """The limits that are set, by the part of the budget."""
        limits = {part: self.cleaned_data[f"max_{part}"] for part in ("calls", "tokens", "money", "seconds")}
        return {part: limit for part, limit in limits.items() if limit is not None}


class JudgeForm(BudgetForm):
    """Which version of the judge judges answers anew, the live one when it is empty, and what it may use for that."""

    judge_ref = forms.RegexField(REF, required=False)


class EvaluationForm(BudgetForm):
    """What to evaluate, and on what. The page writes the fields itself; see parts/evaluation_form.html."""

    ref = forms.RegexField(REF, initial="main")
    base = forms.RegexField(REF, required=False)
    dataset_version = forms.ModelChoiceField(DatasetVersion.objects.none())
    splits = forms.MultipleChoiceField(
        choices=[(split, split.label) for split in (Split.DEV, Split.GUARD)], initial=[Split.DEV, Split.GUARD]
    )
    repeats = forms.IntegerField(min_value=1, max_value=20, initial=1)
    concurrency = forms.IntegerField(required=False, min_value=1, max_value=10_000)
    is_fresh = forms.BooleanField(required=False)
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

    def options(self) -> dict[str, Any]:
        """What evolution.actions.evaluations.start_evaluation takes beside version and dataset."""
        fields = self.cleaned_data
        chosen = {name: fields[name] for name in ("base", "concurrency", "is_fresh") if fields[name]}
        if budget := self.budget():
            chosen["budget"] = budget
        return {
            "splits": tuple(fields["splits"]),
            "repeats": fields["repeats"],
            "faults": fields["faults"],
            **chosen,
        }


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
