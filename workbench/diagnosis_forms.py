"""What people send about diagnoses: another model, what is done where the harness is not to blame, corrected labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from evolution.actions.handling import Correction
from evolution.errors import LoopError
from evolution.queries.diagnoses import ShownCase
from evolution.states import Handling, Split
from workbench.case_forms import read_statements, write_statements
from workbench.forms import MOST_ID
from workbench.parameters import read_number

LONGEST_STATEMENTS = 20_000


class DiagnosisForm(forms.Form):
    """A person's wording of a diagnosis; one proposed change a line."""

    hypothesis = forms.CharField(max_length=10_000)
    changes = forms.CharField(required=False, max_length=10_000)
    # what is to blame instead, and its file
    part = forms.CharField(required=False, max_length=12)
    path = forms.CharField(required=False, max_length=300)

    def change_lines(self) -> list[str]:
        """The proposed changes, without bullets and empty lines."""
        lines = self.cleaned_data["changes"].splitlines()
        return [line.strip().removeprefix("- ").strip() for line in lines if line.strip()]


class ModelForm(forms.Form):
    """The model to ask, by name; empty for that of the role."""

    model = forms.CharField(required=False, max_length=200)


class HandleForm(forms.Form):
    """What is done about failures that the harness is not to blame for."""

    handling = forms.ChoiceField(choices=Handling.choices)
    reason = forms.CharField(required=False, max_length=2_000)
    # whose calibration cases they become; empty is that of the case
    dataset = forms.RegexField(r"^[A-Za-z0-9_-]{1,64}$", required=False)


class CompareForm(forms.Form):
    """Two records to set side by side."""

    first = forms.IntegerField(required=False, min_value=1, max_value=MOST_ID)
    second = forms.IntegerField(required=False, min_value=1, max_value=MOST_ID)


def read_case_ids(posted: QueryDict) -> list[int]:
    """The cases that are ticked."""
    numbers = [read_number(text) for text in posted.getlist("cases")]
    return [number for number in numbers if number]


@dataclass(frozen=True)
class Label:
    """What is expected of a failure's dataset case, as it is edited."""

    shown: ShownCase
    facts: str
    forbidden: str
    split: str


def view_labels(shown: Sequence[ShownCase]) -> list[Label]:
    """The labels of those that are in a dataset."""
    return [
        Label(each, *_written(each.place.expected), each.place.split)
        for each in shown
        if each.place is not None
    ]


def read_corrections(posted: QueryDict, shown: Sequence[ShownCase]) -> list[Correction]:
    """The labels that differ from what the dataset has; LoopError for one that can't be read."""
    corrections = []
    for label in view_labels(shown):
        pk = label.shown.case.pk
        if f"facts-{pk}" not in posted:
            continue
        facts, forbidden = (_read(posted, f"{name}-{pk}") for name in ("facts", "forbidden"))
        split = posted.get(f"split-{pk}", "")
        if split not in Split.values:
            raise LoopError(_("there is no split %(split)s") % {"split": split})
        if (facts, forbidden, split) != (_plain(label.facts), _plain(label.forbidden), label.split):
            expected: dict[str, Any] = {
                "facts": read_statements(facts, "fact", "accept"),
                "forbidden": read_statements(forbidden, "claim", "match"),
            }
            corrections.append(Correction(pk, expected, split))
    return corrections


def _read(posted: QueryDict, name: str) -> str:
    text = _plain(posted.get(name, ""))
    if len(text) > LONGEST_STATEMENTS:
        raise LoopError(_("a label has at most %(n)d characters") % {"n": LONGEST_STATEMENTS})
    return text


def _plain(text: str) -> str:
    """Browsers send CRLF, and what is typed ends in blanks."""
    return "\n".join(line.strip() for line in text.splitlines()).strip()


def _written(expected: Any) -> tuple[str, str]:
    known = expected if isinstance(expected, dict) else {}
    return (
        write_statements(known.get("facts"), "fact", "accept"),
        write_statements(known.get("forbidden"), "claim", "match"),
    )
