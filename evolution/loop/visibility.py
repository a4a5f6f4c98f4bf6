"""What models may see of the failures: what they are measured on unseen stays hidden from diagnoser and editor.

Hidden are the guard, sealed and calibration cases of the newest dataset versions, and the held-out half of the dev
cases; and so are failures that ask the same as one of them, wherever they come from.
"""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from evolution.loop.halves import coming_round, is_held_in, is_shown_to_drafters
from evolution.models import Cluster, DatasetCase, DatasetVersion, Event, FailureCase, Harness
from evolution.states import CaseState, Split

# How many rounds ahead it is worth saying when a case can be seen.
ROUNDS_AHEAD = 20
# Audit verbs of a failure that became a case of the judge's calibration, and whose case nobody's word stands for now.
SENT_TO_CALIBRATION = "failurecase.sent_to_calibration"
LEFT_CALIBRATION = "failurecase.left_calibration"


@dataclass(frozen=True)
class Hidden:
    """The dataset cases that a round's drafters must not see."""

    # (id of the dataset, key)
    keys: frozenset[tuple[int, str]]
    # what they ask, see `wording_of`
    requests: frozenset[str]


def is_visible_to_models(case: FailureCase) -> bool:
    """Say whether a model may see it in some round: no guard, sealed or calibration case."""
    return case.dataset_case is None or case.dataset_case.split == Split.DEV


def shown_members(
    cluster: Cluster, number: int | None = None, hidden: Hidden | None = None
) -> list[FailureCase]:
    """The cluster's open members that drafters may see, the strongest first; in the coming round if none is given.

    `hidden` is what is hidden in that round, for a caller that has many clusters.
    """
    harness = cluster.harness
    number = coming_round(harness) if number is None else number
    hidden = hidden or hidden_cases(harness, number)
    return [case for case in _open_members(cluster) if _is_shown(case, number, hidden)]


def find_round(cluster: Cluster) -> int | None:
    """The next round whose drafters may see a member; None where that can't be said, or where it is never."""
    first = coming_round(cluster.harness)
    members = [case for case in _open_members(cluster) if is_visible_to_models(case)]
    rounds = range(first, first + ROUNDS_AHEAD) if members else range(0)
    return next((number for number in rounds if shown_members(cluster, number)), None)


def find_hidden(harness: Harness, case_ids: Iterable[int]) -> set[int]:
    """Those of the failures that drafters must see in no round; those that are no longer there, too."""
    wanted, hidden = set(case_ids), hidden_cases(harness, None)
    cases = FailureCase.objects.filter(harness=harness, pk__in=wanted).select_related("dataset_case__version")
    return wanted - {case.pk for case in cases if is_visible_to_models(case) and not _is_among(case, hidden)}


def hidden_cases(harness: Harness, number: int | None) -> Hidden:
    """What the drafters of round `number` (None: of any round) must not see, by the newest dataset versions."""
    keys, requests = set(), set()
    taken_back = _taken_back(harness)
    rows = _newest_cases(harness).values_list(
        "version__dataset_id", "version__dataset__name", "key", "split", "request"
    )
    for dataset, name, key, split, request in rows.iterator(chunk_size=500):
        if split == Split.CALIBRATION and (name, key) in taken_back:
            continue
        if split != Split.DEV or (number is not None and not is_held_in(number, key)):
            keys.add((dataset, key))
            requests.add(wording_of(request))
    return Hidden(frozenset(keys), frozenset(requests - {""}))


def known_keys(harness: Harness, cases: Sequence[FailureCase]) -> list[str]:
    """Keys of the dev cases that whoever sees these failures has seen: their own, and those that ask the same."""
    keys = {case.dataset_case.key for case in cases if case.dataset_case is not None}
    asked = {wording_of(case.request) for case in cases} - {""}
    rows = _newest_cases(harness).filter(split=Split.DEV).values_list("key", "request")
    return sorted(
        keys | {key for key, request in rows.iterator(chunk_size=500) if wording_of(request) in asked}
    )


def calibration_key(case: FailureCase) -> str:
    """The key of the calibration case that is made of a failure."""
    return f"calibration-{case.pk}"


def wording_of(request: Any) -> str:
    """What is asked, as one text to compare: letters and digits alone, in one case and width; "" for nothing."""
    return " ".join(_words(text) for text in _texts(request)).strip()


def _is_shown(case: FailureCase, number: int, hidden: Hidden) -> bool:
    return is_shown_to_drafters(case, number) and not _is_among(case, hidden)


def _is_among(case: FailureCase, hidden: Hidden) -> bool:
    """Whether it is one of the hidden cases, or asks the same."""
    known = case.dataset_case
    is_hidden = known is not None and (known.version.dataset_id, known.key) in hidden.keys
    return is_hidden or wording_of(case.request) in hidden.requests


def _newest_cases(harness: Harness) -> QuerySet[DatasetCase]:
    newest = DatasetVersion.objects.filter(dataset=OuterRef("version__dataset")).order_by("-number")
    return DatasetCase.objects.filter(
        version__dataset__harness=harness, version=Subquery(newest.values("pk")[:1])
    )


def _taken_back(harness: Harness) -> set[tuple[str, str]]:
    """The calibration cases, as (name of the dataset, key), whose failure somebody took back, by the audit trail."""
    told = Event.objects.filter(harness_id=harness.pk, verb__in=(SENT_TO_CALIBRATION, LEFT_CALIBRATION))
    newest = {event.target_id: event for event in told.order_by("pk")}
    living = FailureCase.objects.filter(harness=harness).in_bulk(list(newest))
    return {
        (str(event.data.get("dataset")), calibration_key(living[case]))
        for case, event in newest.items()
        if event.verb == LEFT_CALIBRATION and case in living
    }


def _open_members(cluster: Cluster) -> Sequence[FailureCase]:
    members = FailureCase.objects.filter(cluster=cluster, state=CaseState.OPEN)
    related = members.select_related("harness", "dataset_case__version")
    return list(related.defer("embedded_text", "signals").order_by("-strength", "pk"))


def _texts(request: Any) -> Iterable[str]:
    """What the user said, and what was said before; of a simulated user, its goal; of anything else, all of it."""
    if not isinstance(request, dict):
        return [str(request or "")]
    lines = [*_lines(request.get("history")), *_lines(request.get("danmaku"))]
    user = request.get("user")
    if isinstance(user, dict):
        lines.append(str(user.get("goal") or ""))
    lines = lines or _lines(request.get("messages"))
    return lines or ([json.dumps(request, ensure_ascii=False, sort_keys=True)] if request else [])


def _lines(block: Any) -> list[str]:
    entries = block if isinstance(block, list) else []
    return [
        str(entry.get("text") or entry.get("content") or "") if isinstance(entry, dict) else str(entry)
        for entry in entries
    ]


def _words(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in plain if character.isalnum())
