"""What the page of a case asks for: tags, whose it is, notes, and how it goes into a dataset."""

import re
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from evolution.actions.case_notes import LONGEST_NOTE
from evolution.actions.dataset_cases import Wanted
from evolution.loop.dataset_cases import has_question
from evolution.states import Split
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.storable import is_storable

# Of JSON in a field. Fixtures that take more are taken as they are, and not edited in a browser.
MOST_JSON = 400_000
_COMMAS = re.compile("[,，\n]")


class TagsForm(forms.Form):
    """Tags, divided by commas."""

    tags = forms.CharField(required=False, max_length=4_000)

    def clean_tags(self) -> list[str]:
        """The tags that are not empty."""
        return [tag for tag in _COMMAS.split(self.cleaned_data["tags"]) if tag.strip()]


class AssignForm(forms.Form):
    """Whose a case is: a user name, or nothing."""

    person = forms.CharField(required=False, max_length=150)


class NoteForm(forms.Form):
    """A note."""

    text = forms.CharField(required=False, max_length=LONGEST_NOTE)


class JsonField(forms.CharField):
    """A JSON object; an empty field is None, which says to take what the failure has."""

    def clean(self, value: Any) -> dict[str, Any] | None:
        """Refuse what is no object, or holds what a database refuses."""
        text = super().clean(value)
        if not text.strip():
            return None
        try:
            found = read_json(text)
        except ValueError as failure:
            raise forms.ValidationError(_("This is not JSON: %(why)s"), params={"why": failure}) from None
        if not isinstance(found, dict) or not is_storable(found):
            raise forms.ValidationError(_("This has to be a JSON object."))
        return found


class DatasetForm(forms.Form):
    """How failures are to stand in a dataset. The page writes the fields itself; see templates/case_dataset.html."""

    dataset = forms.RegexField(
        r"^[A-Za-z0-9_-]{1,64}$",
        error_messages={"invalid": _("A name has letters, digits, - and _, at most 64.")},
    )
    split = forms.ChoiceField(choices=Split.choices, initial=Split.DEV)
    key = forms.RegexField(
        r"^[^\s/]{1,80}$",
        required=False,
        error_messages={"invalid": _("A key has no blanks and no slash, and at most 80 characters.")},
    )
    category = forms.CharField(required=False, max_length=64)
    facts = forms.CharField(required=False, max_length=20_000)
    forbidden = forms.CharField(required=False, max_length=20_000)
    request = JsonField(required=False, max_length=MOST_JSON)
    fixtures = JsonField(required=False, max_length=MOST_JSON)
    # without it tools have no answers: what the trajectory shows is not to be repeated
    with_fixtures = forms.BooleanField(required=False)

    def clean_facts(self) -> list[dict[str, Any]]:
        """A fact a line: "what is stated | how it may be written | ..."."""
        return read_statements(self.cleaned_data["facts"], "fact", "accept")

    def clean_forbidden(self) -> list[dict[str, Any]]:
        """A claim a line, as facts are written."""
        return read_statements(self.cleaned_data["forbidden"], "claim", "match")

    def clean_request(self) -> dict[str, Any] | None:
        """Refuse a request that nobody could answer."""
        request: dict[str, Any] | None = self.cleaned_data["request"]
        if request is not None and not has_question(request):
            raise forms.ValidationError(
                _("A request needs a danmaku with a text, or a user with a goal."),
            )
        return request

    def clean_fixtures(self) -> dict[str, Any] | None:
        """Refuse what a sandbox could not answer from."""
        fixtures: dict[str, Any] | None = self.cleaned_data["fixtures"]
        for tool, entries in (fixtures or {}).items():
            if not isinstance(entries, list) or not all(map(_is_fixture, entries)):
                text = _('%(tool)s: fixtures are a list of {"arguments": {...}, "result": ...}')
                raise forms.ValidationError(text, params={"tool": tool})
        return fixtures

    def wanted(self) -> Wanted:
        """What the form asks for."""
        fields = self.cleaned_data
        return Wanted(
            dataset=fields["dataset"],
            split=fields["split"],
            key=fields["key"],
            category=fields["category"].strip(),
            expected={"facts": fields["facts"], "forbidden": fields["forbidden"]},
            request=fields["request"],
            fixtures=fields["fixtures"] if fields["with_fixtures"] else {},
        )


def _is_fixture(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("arguments", {}), dict) and "result" in entry


def read_statements(text: str, title: str, texts: str) -> list[dict[str, Any]]:
    """A statement a line, with the ways to write it after bars; without one it is written as it is itself."""
    statements = []
    for line in text.splitlines():
        name, *ways = [part.strip() for part in line.split("|")]
        if name:
            statements.append({title: name, texts: [way for way in ways if way] or [name]})
    return statements


def write_statements(statements: Any, title: str, texts: str) -> str:
    """The same backwards, for a case that is in a dataset already."""
    rows = [row for row in statements if isinstance(row, dict)] if isinstance(statements, list) else []
    lines = []
    for row in rows:
        name, ways = str(row.get(title, "")), [str(way) for way in row.get(texts) or []]
        lines.append(name if ways == [name] else " | ".join([name, *ways]))
    return "\n".join(lines)
