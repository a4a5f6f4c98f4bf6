"""What the source says of a failure beside its scores, in words for a page: errors, failed checks, feedback."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from evolution.models import FailureCase

# Of each kind; a test run may have thousands of checks, and the raw record has them all.
MOST = 50


@dataclass(frozen=True)
class Signal:
    """One line of a list: what it is, how it speaks ("good", "bad" or ""), its name, and what it says."""

    kind: str
    tone: str
    name: str
    text: str


def read_signals(case: FailureCase) -> list[Signal]:
    """Errors, then checks with the failed ones first, then feedback; any stored shape is survived."""
    stored = case.signals if isinstance(case.signals, dict) else {}
    checks = sorted(_rows(stored.get("checks")), key=lambda check: bool(check.get("passed")))
    errors = stored.get("errors")
    return [
        *(
            Signal(_("error"), "bad", "", str(error))
            for error in (errors if isinstance(errors, list) else [])[:MOST]
        ),
        *(_check(check) for check in checks[:MOST]),
        *(_feedback(said) for said in _rows(stored.get("feedback"))[:MOST]),
    ]


def _check(check: dict[str, Any]) -> Signal:
    passed = bool(check.get("passed"))
    words = _("check passed") if passed else _("check failed")
    return Signal(
        words, "good" if passed else "bad", str(check.get("name") or ""), str(check.get("reason") or "")
    )


def _feedback(said: dict[str, Any]) -> Signal:
    parts = (said.get("value"), said.get("comment"))
    return Signal(
        _("feedback"),
        "",
        str(said.get("name") or ""),
        " · ".join(str(part) for part in parts if part not in (None, "")),
    )


def _rows(value: Any) -> list[dict[str, Any]]:
    return list(_dicts(value)) if isinstance(value, list) else []


def _dicts(value: list[Any]) -> Iterator[dict[str, Any]]:
    return (row for row in value if isinstance(row, dict))
