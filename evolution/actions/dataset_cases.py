"""What people do to keep a failure from coming back: add it to a dataset, where every evaluation asks it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.demonstration import CaseData
from evolution.errors import LoopError
from evolution.loop import dataset_cases
from evolution.loop.blame import find_blame
from evolution.loop.dataset_cases import Added, find_newest
from evolution.models import FailureCase, Harness
from evolution.states import Split
from evolution.transitions import record

# Cases are rows of a version with their fixtures: beyond this somebody chose wrong.
MOST_CASES = 2_000


@dataclass(frozen=True)
class Wanted:
    """How failures are to stand in the dataset; what is None is taken from each failure."""

    dataset: str
    split: str
    # of a single failure its key, of several what their keys begin with
    key: str = ""
    category: str = ""
    # facts with what is accepted for each, forbidden claims with how they are said: see loop.judging
    expected: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] | None = None
    fixtures: dict[str, Any] | None = None


@dataclass(frozen=True)
class AddedCases:
    """What became of the failures; `left_out` are those that no agent could be asked."""

    added: Added
    left_out: list[FailureCase]


@transaction.atomic
def add_to_dataset(
    actor: Actor, harness: Harness, failures: Sequence[FailureCase], wanted: Wanted
) -> AddedCases:
    """Add failures of the harness to a dataset, as a new version of it.

    Doing it again changes nothing. Raises LoopError when there is none to add, when there are too many, when a key
    is taken, and for a sealed case that models may have seen.
    """
    actor.require(Role.DEVELOPER)
    if len(failures) > MOST_CASES:
        raise LoopError(_("at most %(most)d cases can be added at once") % {"most": MOST_CASES})
    if wanted.split == Split.SEALED:
        _check_unseen(failures)
    cases, left_out = [], []
    for failure in failures:
        key = _key_of(failure, wanted, is_single=len(failures) == 1)
        try:
            cases.append((failure, _build(failure, key, wanted)))
        except LoopError:
            left_out.append(failure)
    if not cases:
        raise LoopError(_("none of these cases has a request that an agent could be asked"))
    added = dataset_cases.add_cases(actor, harness, wanted.dataset, cases)
    _record_added(actor, added, cases, wanted.dataset)
    return AddedCases(added, left_out)


@transaction.atomic
def correct_case(actor: Actor, failure: FailureCase, expected: Mapping[str, Any], split: str = "") -> None:
    """Correct what is expected of the dataset case that a failure is tied to, as a new version of the dataset.

    All that is not given stays as the newest version has it. Raises LoopError for a failure in no dataset, and for a
    case that is to be sealed from now on although a model may have seen it.
    """
    actor.require(Role.DEVELOPER)
    newest = find_newest(failure)
    if newest is None:
        raise LoopError(_("%(case)s is in no dataset, so there is no label to correct") % {"case": failure})
    old = dataset_cases.to_case_data(newest)
    corrected = replace(old, expected={**old.expected, **expected}, split=split or old.split)
    if corrected.split == Split.SEALED != old.split:
        _check_unseen([failure])
    name = newest.version.dataset.name
    added = dataset_cases.add_cases(actor, failure.harness, name, [(failure, corrected)])
    _record_added(actor, added, [(failure, corrected)], name)


def _record_added(
    actor: Actor, added: Added, cases: Sequence[tuple[FailureCase, CaseData]], dataset: str
) -> None:
    for failure, case in cases:
        if case.key not in added.kept:
            where: dict[str, Any] = {
                "dataset": dataset,
                "number": added.version.number,
                "key": case.key,
            }
            record(actor, "failurecase.added_to_dataset", failure, **where, split=case.split)


def _build(failure: FailureCase, key: str, wanted: Wanted) -> CaseData:
    blame = find_blame(failure) if wanted.request is None else None
    return dataset_cases.build_case(
        failure,
        key,
        wanted.split,
        category=wanted.category,
        expected=wanted.expected,
        request=wanted.request,
        fixtures=wanted.fixtures,
        turn=blame.turn if blame else None,
    )


def suggest_key(failure: FailureCase, beginning: str = "case") -> str:
    """The key that a failure gets: the one it has in a dataset, else its number after `beginning`."""
    return failure.dataset_case.key if failure.dataset_case else f"{beginning or 'case'}-{failure.pk}"


def _key_of(failure: FailureCase, wanted: Wanted, *, is_single: bool) -> str:
    return wanted.key if is_single and wanted.key else suggest_key(failure, wanted.key)


def _check_unseen(failures: Sequence[FailureCase]) -> None:
    """A sealed case measures what nobody worked on; a diagnosis may have shown these to a model."""
    seen = [failure for failure in failures if failure.cluster and failure.cluster.diagnoses.exists()]
    if seen:
        names = ", ".join(str(failure.pk) for failure in seen[:5])
        raise LoopError(
            _(
                "the diagnosis of their cluster has shown these cases to a model, so they can't be sealed: %(cases)s"
            )
            % {"cases": names}
        )
