"""What reviewers may send: instructions, comments on lines, files edited by hand. Shape only, as in `forms`."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

MAX_TEXT = 200_000


class InstructionForm(forms.Form):
    """An instruction to the editor."""

    feedback = forms.CharField(max_length=10_000)


class PlaceForm(forms.Form):
    """A line of a proposal's diff; without a path, the proposal as a whole."""

    path = forms.CharField(required=False, max_length=300, strip=False)
    side = forms.ChoiceField(choices=[("old", "old"), ("new", "new")])
    line = forms.IntegerField(required=False, min_value=0, max_value=10_000_000)


class ChangesForm(forms.Form):
    """What a reviewer asks the editor for, beside the open threads."""

    text = forms.CharField(required=False, max_length=10_000)


class CommentForm(forms.Form):
    """What a person says of a line."""

    text = forms.CharField(max_length=10_000, strip=False)


class FileForm(forms.Form):
    """A harness file edited by hand, and the head that the editor started from."""

    # empty for a new file
    path = forms.CharField(required=False, max_length=300)
    # where it is to be, when that is elsewhere
    new_path = forms.CharField(required=False, max_length=300)
    content = forms.CharField(required=False, max_length=MAX_TEXT, strip=False)
    message = forms.CharField(required=False, max_length=200)
    expected_head = forms.RegexField(r"^[0-9a-f]{40}$")

    def clean(self) -> dict[str, Any]:
        """A file has a name."""
        fields = self.cleaned_data
        if not fields.get("path") and not fields.get("new_path"):
            raise forms.ValidationError(_("give the file a path"))
        return fields

    def clean_content(self) -> str:
        """Browsers send CRLF; harness files have LF."""
        return str(self.cleaned_data["content"]).replace("\r\n", "\n")
