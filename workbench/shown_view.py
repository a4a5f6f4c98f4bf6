"""What a model was shown of cases and files, and what was cut, as pages tell it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evolution.models import Exchange
from evolution.queries.exchanges import name_shown_cases


@dataclass(frozen=True)
class CaseShown:
    """One case, with what was cut of it, in words."""

    pk: Any
    # empty where the case is gone
    title: str = ""
    cuts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ShownView:
    """What stood in one question."""

    round: int | None = None
    cases: list[CaseShown] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    # whole
    files: list[str] = field(default_factory=list)
    # path -> what is missing, in words
    cut_files: list[tuple[str, str]] = field(default_factory=list)
    # of cases that ran on another version
    versions: list[dict[str, Any]] = field(default_factory=list)
    tokens: int | None = None
    budget: int | None = None
    # open members of the cluster then, and how many of them could be shown in the round; None where it was not kept
    members: int | None = None
    allowed: int | None = None

    @property
    def held_back(self) -> int:
        """Members that this round keeps from drafters."""
        return (self.members or 0) - (self.allowed or 0) if self.allowed is not None else 0

    @property
    def cut_cases(self) -> int:
        """How many cases were not shown whole."""
        return sum(bool(case.cuts) for case in self.cases)

    @property
    def file_count(self) -> int:
        """Files of which anything was shown."""
        return len(self.files) + len(self.cut_files)


def view_shown(exchange: Exchange) -> ShownView:
    """What was shown, from the record; anything that is not there is left out."""
    return view_all_shown([exchange])[exchange.pk]


def view_all_shown(exchanges: Sequence[Exchange]) -> dict[int, ShownView]:
    """The same for exchanges of one harness, by their ids."""
    ids = [pk for each in exchanges if isinstance(each.shown, dict) for pk in _list(each.shown, "cases")]
    titles = name_shown_cases(exchanges[0].harness, ids) if exchanges else {}
    return {each.pk: _view(each, titles) for each in exchanges}


def _view(exchange: Exchange, titles: Mapping[int, str]) -> ShownView:
    shown = exchange.shown if isinstance(exchange.shown, dict) else {}
    cuts = _rows(shown, "cut")
    ids = _list(shown, "cases")
    by_case: dict[Any, list[str]] = {}
    for cut in cuts:
        if "case" in cut:
            by_case.setdefault(cut["case"], []).append(say_cut(cut))
    return ShownView(
        round=shown.get("round"),
        cases=[CaseShown(pk, titles.get(pk, ""), by_case.get(pk, [])) for pk in ids],
        keys=[str(key) for key in _list(shown, "keys")],
        files=[str(path) for path in _list(shown, "files")],
        cut_files=[(str(cut["path"]), say_cut(cut)) for cut in cuts if "path" in cut],
        versions=_rows(shown, "versions"),
        tokens=shown.get("tokens"),
        budget=shown.get("budget"),
        members=shown.get("members"),
        allowed=shown.get("allowed"),
    )


def say_cut(cut: Mapping[str, Any]) -> str:
    """One cut: turns that were left out, or characters of a part."""
    if "turns" in cut:
        first, last = cut["turns"]
        if first == last:
            return _("turn %(n)s left out") % {"n": first}
        return _("turns %(first)s-%(last)s left out") % {"first": first, "last": last}
    count = int(cut.get("characters") or 0)
    words = ngettext("%(n)s character cut", "%(n)s characters cut", count)
    # A comma: pages name the thin space where it stands in what others wrote.
    said = words % {"n": f"{count:,}"}
    place = [_("turn %(n)s") % {"n": cut["turn"]}] if cut.get("turn") else []
    place += [str(cut["part"])] if cut.get("part") else []
    return f"{', '.join(place)}: {said}" if place else said


def _list(shown: Mapping[str, Any], name: str) -> list[Any]:
    value = shown.get(name)
    return value if isinstance(value, list) else []


def _rows(shown: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for row in _list(shown, name) if isinstance(row, dict)]
