"""What the pages of imports may send: files, and how they are to be read."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evolution.adapters.formats.detect import FORMATS
from evolution.adapters.formats.mapping import check_mapping, guess_mapping
from evolution.errors import LoopError
from evolution.loop.failure_rules import PARTS, FailureRule, parse_rule
from evolution.loop.imports import ImportOptions

# Bytes of all files of one upload.
MAX_UPLOAD = 2 * 1024**3
# Columns of a table whose meaning can be chosen.
MOST_COLUMNS = 300


class ManyFiles(forms.FileField):
    """Several files under one name."""

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        """Check each file by itself."""
        return [super(ManyFiles, self).clean(file, initial) for file in data or []]


class ManyFilesInput(forms.ClearableFileInput):
    """The widget that lets a browser send several."""

    allow_multiple_selected = True

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:  # noqa: ARG002  Django's signature
        """All files of the name."""
        return files.getlist(name)


class UploadsForm(forms.Form):
    """Files to import; the command line takes any size."""

    uploads = ManyFiles(widget=ManyFilesInput, allow_empty_file=True)

    def clean_uploads(self) -> list[Any]:
        """Refuse what a web request should not carry."""
        files: list[Any] = self.cleaned_data["uploads"]
        if sum(file.size for file in files) > MAX_UPLOAD:
            raise forms.ValidationError(
                _("The files are larger than 2 GB; use the command import_cases for them.")
            )
        return files


class ImportSettingsForm(forms.Form):
    """How uploads are read, and what of them becomes a case. The page writes the fields itself."""

    format = forms.ChoiceField(choices=[(name, name) for name in FORMATS], label=_("Format"))
    thresholds = forms.CharField(required=False, max_length=2_000, label=_("Scores that are a failure"))
    errors_count = forms.BooleanField(required=False)
    checks_count = forms.BooleanField(required=False)
    feedback_count = forms.BooleanField(required=False)
    verdict_count = forms.BooleanField(required=False)
    unscored_count = forms.BooleanField(required=False)
    everything = forms.BooleanField(required=False)
    source = forms.SlugField(
        required=False, max_length=64, allow_unicode=True, label=_("Booked under the source")
    )
    # the source whose settings the page shows
    shown_source = forms.CharField(required=False, max_length=64)
    remember = forms.BooleanField(required=False)

    def options(self) -> ImportOptions:
        """The settings; raises LoopError for a rule that is none."""
        fields = self.cleaned_data
        parts = [part for part in PARTS if fields[f"{part}_count"]]
        return ImportOptions(
            format=fields["format"],
            mapping=self._mapping(),
            rule=parse_rule(",".join([fields["thresholds"], *parts])),
            only_failures=not fields["everything"],
        )

    def _mapping(self) -> dict[str, str]:
        """What people said of the columns of a table, as far as it differs from what their names tell."""
        columns = [str(self.data[f"name-{number}"]) for number in self._numbers()]
        if "\0" in "".join(columns):
            raise LoopError(gettext("a column's name has a NUL character"))
        guess = guess_mapping(columns)
        chosen: dict[str, str] = {}
        for number, column in zip(self._numbers(), columns, strict=True):
            field = str(self.data.get(f"field-{number}", ""))
            field = f"scores.{column}" if field == "scores" else field
            if field in chosen:
                what = {"field": field, "one": chosen[field], "other": column}
                raise LoopError(gettext("%(field)s can't be both %(one)s and %(other)s") % what)
            if field:
                chosen[field] = column
        # A field that its column was taken from has none.
        given = {**{field: "" for field in guess if field not in chosen}, **chosen}
        mapping = {field: column for field, column in given.items() if guess.get(field) != column}
        check_mapping(mapping)
        return mapping

    def _numbers(self) -> list[int]:
        """The columns that the page has sent, in order."""
        return [number for number in range(MOST_COLUMNS) if f"name-{number}" in self.data]


def read_settings(form: ImportSettingsForm) -> ImportOptions:
    """The settings of a form; raises LoopError for what can't be read."""
    if not form.is_valid():
        errors = [f"{form[name].label}: {text}" for name, texts in form.errors.items() for text in texts]
        raise LoopError("; ".join(errors))
    return form.options()


def show_rule(rule: FailureRule) -> dict[str, Any]:
    """A rule as the fields of the page show it."""
    return {
        "thresholds": ", ".join(map(str, rule.thresholds)),
        **{part: getattr(rule, part) for part in PARTS},
    }
