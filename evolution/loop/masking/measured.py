"""Secrets are taken out of results that were made elsewhere; personal data stays, for results are compared by it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from evolution.errors import BrokenInput
from evolution.loop.masking.masker import Masker, MaskingError
from evolution.ports import MeasuredCase, MeasuredResult, MeasuredRun

_OF_CASE = ("key", "request", "category", "context", "expected")
_OF_RESULT = ("key", "reasons", "findings", "reply", "trajectory", "error")
_OF_RUN = ("dataset", "model", "judge", "user_model", "variant", "declared", "problems", "details")

_Held = TypeVar("_Held", MeasuredCase, MeasuredResult, MeasuredRun)


def mask_measured(run: MeasuredRun, masker: Masker) -> MeasuredRun:
    """The run without what the rules find; raises BrokenInput where one of them can't be applied."""
    try:
        return replace(
            _masked(run, _OF_RUN, masker),
            cases=[_masked(case, _OF_CASE, masker) for case in run.cases],
            results=[_masked(result, _OF_RESULT, masker) for result in run.results],
        )
    except MaskingError as error:
        raise BrokenInput(_("the results can't be masked: %(problem)s") % {"problem": error}) from None


def _masked(held: _Held, names: Sequence[str], masker: Masker) -> _Held:
    texts = {name: getattr(held, name) for name in names}
    # Keys tell results apart, in the whole run.
    key, key_counts = masker.mask_part(texts.pop("key", ""))
    masked, counts = masker.mask_value(texts)
    if not counts and not key_counts:
        return held
    changed: dict[str, Any] = masked | ({"key": key} if "key" in names else {})
    return replace(held, **changed)
