"""What pages may send. Forms check shape only: what is allowed is for the actions to say."""

import re
from datetime import date
from decimal import Decimal
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evolution.adapters.results.wanted import Wanted
from evolution.errors import LoopError
from evolution.models import DatasetVersion, Harness
from evolution.queries.case_filters import UNCLUSTERED, CaseFilter
from evolution.queries.clusters import EVERY, LIVING, MEMBER_ORDERS, ORDERS, ClusterFilter
from evolution.queries.evaluations import list_dataset_versions
from evolution.queries.results import OUTCOMES, ResultFilter
from evolution.states import CaseState, ClusterState, Split
from harness_repo.runtime.faults import Fault, parse_fault
from workbench.inbox import NAMES

MAX_UPLOAD = 200 * 1024 * 1024
MAX_TEXT = 200_000
# Of a number that is written without an exponent.
MOST = 10**12
# Of the database's ids.
MOST_ID = 2**63 - 1
# Days that have midnights in every time zone.
FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(9998, 12, 30)


class CaseFilterForm(forms.Form):
    """The filters of the inbox; what makes no sense is left out."""

    state = forms.CharField(required=False, max_length=12)
    source = forms.CharField(required=False, max_length=64)
    category = forms.CharField(required=False, max_length=64)
    cluster = forms.RegexField(rf"^(\d{{1,9}}|{UNCLUSTERED})$", required=False)
    text = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=64)
    assignee = forms.CharField(required=False, max_length=150)
    language = forms.CharField(required=False, max_length=8)
    version = forms.RegexField(r"^[0-9a-fA-F]{4,40}$", required=False)
    imported = forms.IntegerField(required=False, min_value=1, max_value=MOST_ID)
    lowest = forms.FloatField(required=False)
    highest = forms.FloatField(required=False)
    since = forms.DateField(
        required=False, validators=[MinValueValidator(FIRST_DAY), MaxValueValidator(LAST_DAY)]
    )
    until = forms.DateField(
        required=False, validators=[MinValueValidator(FIRST_DAY), MaxValueValidator(LAST_DAY)]
    )
    upto = forms.IntegerField(required=False, min_value=0, max_value=MOST_ID)

    def wanted(self) -> CaseFilter:
        """The filter; without a state in the query it is the open cases, with an empty one all of them."""
        self.full_clean()
        given = {
            name: value for name, value in self.cleaned_data.items() if value is not None and value != ""
        }
        state = given.pop("state", "") if "state" in self.data else CaseState.OPEN
        return CaseFilter(state=state, **given)

    def list_unread(self) -> list[str]:
        """The filters that make no sense, by their labels."""
        return [gettext(NAMES.get(name, name)) for name in self.errors]

    def wanted_strictly(self) -> CaseFilter:
        """The same for deeds: LoopError for what makes no sense, as without it too many cases would be meant."""
        if unread := self.list_unread():
            raise LoopError(_("these filters can't be read: %(names)s") % {"names": ", ".join(unread)})
        return self.wanted()


class CasePlaceForm(forms.Form):
    """Which part of a list of cases is wanted: before or after an id."""

    before = forms.IntegerField(required=False, min_value=1, max_value=MOST_ID)
    after = forms.IntegerField(required=False, min_value=0, max_value=MOST_ID)

    def place(self) -> dict[str, int]:
        """The arguments of queries.cases.list_cases; none for the beginning of the list."""
        self.full_clean()
        return {name: value for name, value in self.cleaned_data.items() if value is not None}


class BulkForm(forms.Form):
    """A button over the list of cases, with what each of them needs; the rows that are ticked are beside it."""

    verb = forms.ChoiceField(
        choices=[(verb, verb) for verb in ("ignore", "reopen", "tag", "untag", "assign", "move", "dataset")]
    )
    # all that pass the filters, up to the newest case when they were counted
    all = forms.BooleanField(required=False)
    upto = forms.IntegerField(required=False, min_value=0, max_value=MOST_ID)
    reason = forms.CharField(required=False, max_length=2_000)
    tag = forms.CharField(required=False, max_length=200)
    person = forms.CharField(required=False, max_length=150)
    # of a cluster; empty takes out of any
    number = forms.IntegerField(required=False, min_value=0, max_value=2**31 - 1)


class ClusterFilterForm(forms.Form):
    """The filters of the list of clusters; what makes no sense is left out."""

    state = forms.ChoiceField(
        required=False, choices=[(name, name) for name in (LIVING, EVERY, *ClusterState.values)]
    )
    text = forms.CharField(required=False, max_length=200)
    order = forms.ChoiceField(required=False, choices=[(name, name) for name in ORDERS])
    page = forms.IntegerField(required=False, min_value=1, max_value=10**6)

    def wanted(self) -> ClusterFilter:
        """The filter that the query asks for; without a state the clusters that want work."""
        self.full_clean()
        return ClusterFilter(**{name: value for name, value in self.cleaned_data.items() if value})


class MembersForm(forms.Form):
    """Which members of a cluster are listed, and in which order."""

    members = forms.ChoiceField(required=False, choices=[(state, state) for state in CaseState.values])
    order = forms.ChoiceField(required=False, choices=[(name, name) for name in MEMBER_ORDERS])
    page = forms.IntegerField(required=False, min_value=1, max_value=10**6)


class GroupForm(forms.Form):
    """A name and a reason for failures that are to be a cluster of their own; the failures are beside it."""

    name = forms.CharField(max_length=200)
    reason = forms.CharField(required=False, max_length=2_000)
    all = forms.BooleanField(required=False)
    upto = forms.IntegerField(required=False, min_value=0, max_value=MOST_ID)


class MergeForm(forms.Form):
    """Numbers of clusters that are to be merged into one, and why; those that are ticked are beside them."""

    numbers = forms.RegexField(r"^[\d\s,;#，、]*$", required=False, max_length=500)
    reason = forms.CharField(required=False, max_length=2_000)

    def read_numbers(self, ticked: list[str]) -> set[int]:
        """The numbers, written and ticked."""
        written = re.findall(r"[0-9]{1,9}", self.cleaned_data["numbers"])
        return {int(number) for number in [*written, *ticked] if re.fullmatch(r"[0-9]{1,9}", number)}


class CompareRunsForm(forms.Form):
    """Two clusterings by id, and two places between which failures went: ids of clusters, 0 or -1."""

    before = forms.IntegerField(required=False, min_value=1, max_value=MOST_ID)
    after = forms.IntegerField(required=False, min_value=1, max_value=MOST_ID)
    was = forms.IntegerField(required=False, min_value=-1, max_value=MOST_ID)
    now = forms.IntegerField(required=False, min_value=-1, max_value=MOST_ID)


class SavedViewForm(forms.Form):
    """A name for the filters of the list."""

    name = forms.CharField(max_length=80)
    is_shared = forms.BooleanField(required=False)
    is_default = forms.BooleanField(required=False)


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
    command: str

    file = forms.FileField(allow_empty_file=True)

    def clean_file(self) -> Any:
        """Refuse what a web request should not carry."""
        upload = self.cleaned_data["file"]
        if upload.size > MAX_UPLOAD:
            text = _("The file is larger than 200 MB; use the command %(command)s for it.")
            raise forms.ValidationError(text % {"command": self.command})
        return upload


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


class SourceNameForm(forms.Form):
    """The name of a new source."""

    name = forms.CharField(max_length=64)


class SourceForm(forms.Form):
    """How a source is read, and what counts as a failure there."""

    format = forms.CharField(max_length=32)
    rule = forms.CharField(required=False, max_length=2_000)
    mapping = forms.CharField(required=False, max_length=5_000)

    def clean_mapping(self) -> dict[str, str]:
        """Read lines of OUR FIELD = THEIRS."""
        lines = [line for line in self.cleaned_data["mapping"].splitlines() if line.strip()]
        pairs = [[part.strip() for part in line.split("=", 1)] for line in lines]
        if not all(len(pair) == 2 and all(pair) for pair in pairs):
            raise forms.ValidationError(_("Each line says OUR FIELD = THEIRS."))
        return dict(pairs)


class MaskingTextForm(forms.Form):
    """A text to try the masking rules on."""

    text = forms.CharField(max_length=MAX_TEXT, strip=False)


class MaskingRuleForm(forms.Form):
    """A masking rule; whether it can work is for the action to say."""

    name = forms.CharField(required=False, max_length=32)
    label = forms.CharField(max_length=32)
    description = forms.CharField(required=False, max_length=200)
    pattern = forms.CharField(max_length=4_000, strip=False)
    is_secret = forms.BooleanField(required=False)
    is_enabled = forms.BooleanField(required=False)


class ReasonForm(forms.Form):
    """A reason, where one is asked for."""

    reason = forms.CharField(required=False, max_length=2_000)


class NameForm(forms.Form):
    """A better name for something."""

    name = forms.CharField(max_length=200)


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
