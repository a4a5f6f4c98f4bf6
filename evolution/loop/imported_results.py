"""Beside stage 5: results that another program made become an evaluation, so that flips and verdicts work on them too.

The source's case ids are the case keys. With a commit they are that version's; without, a version's that nobody named:
then the model belongs to what was measured, and is not asked to be the same in a comparison. Nothing is run.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.demonstration import CaseData
from evolution.errors import BrokenInput
from evolution.loop.case_content import detect_language
from evolution.loop.datasets import MATCHED, digest_cases, import_dataset, leave_out_imported
from evolution.loop.masking import current_masker
from evolution.loop.masking.measured import mask_measured
from evolution.loop.outcomes import LONGEST_ERROR, NOT_STARTED
from evolution.models import CaseResult, DatasetVersion, Evaluation, Harness
from evolution.ports import MeasuredCase, MeasuredResult, MeasuredRun
from evolution.states import EvaluationState
from evolution.transitions import record
from harness_repo.runtime.storable import make_storable

# Columns' lengths.
LONGEST_KEY = 100
LONGEST_NAME = 200
# Kept with the evaluation; all of them are reported.
MOST_PROBLEMS = 20
BATCH = 200
# (case, repeat) pairs of an evaluation; more of them come from a number that is wrong.
MOST_PAIRS = 1_000_000
# What the sources count money in.
CURRENCY = "USD"


@dataclass(frozen=True)
class Origin:
    """Where results come from, and how they were read: the same again is the evaluation that is there."""

    file: str
    # SHA-256 of the content
    digest: str
    # what was chosen when it was read, such as a threshold
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedResults:
    """The evaluation of a file, and what of the file could not be read."""

    evaluation: Evaluation
    # False when the file had been imported before
    is_new: bool
    problems: list[str]


def store_results(
    actor: Actor, harness: Harness, commit: str, run: MeasuredRun, origin: Origin
) -> ImportedResults:
    """Keep a run as an evaluation that has ended: of a commit, or of an unknown version where that is empty.

    The same file read in the same way is the evaluation that it was before. The cases of a dataset that the harness is
    measured by stay as they are. Raises BrokenInput without any result, where most can't be read, for cases that such a
    dataset has not, and for a number of repeats that can't be meant.
    """
    _check_results(run, origin)
    masker = current_masker(only_secrets=True)
    run, origin = mask_measured(run, masker), replace(origin, file=masker.mask_text(origin.file))
    if len(run.cases) * _count_repeats(run) > MOST_PAIRS:
        what = {"name": origin.file, "repeats": _count_repeats(run), "cases": len(run.cases)}
        raise BrokenInput(_("%(name)s: %(repeats)d repeats of %(cases)d cases are too many") % what)
    with transaction.atomic():
        # Two imports of a file at once would both find nothing.
        Harness.objects.select_for_update(no_key=True).get(pk=harness.pk)
        known = _find_known(harness, commit, run, origin)
        if known is not None:
            return ImportedResults(known, is_new=False, problems=run.problems)
        results, repeated = _unique(run.results)
        problems = [*run.problems, *repeated]
        matched = _match_cases(harness, run)
        evaluation = _build_evaluation(harness, commit, matched or _store_cases(actor, harness, run), run)
        evaluation.origin = _describe(run, origin, problems) | ({MATCHED: True} if matched else {})
        _save(actor, evaluation, results)
    return ImportedResults(evaluation, is_new=True, problems=problems)


def _check_results(run: MeasuredRun, origin: Origin) -> None:
    """Raise BrokenInput for a file of which nothing or little can be read: that is another format, or damage."""
    said = "".join(f"\n{problem}" for problem in run.problems[:MOST_PROBLEMS])
    if not run.results:
        raise BrokenInput(_("%(name)s has no results") % {"name": origin.file} + said)
    if len(run.problems) > len(run.results):
        what = {"name": origin.file, "problems": len(run.problems), "results": len(run.results)}
        text = _("most of %(name)s can't be read: %(problems)d problems, %(results)d results")
        raise BrokenInput(text % what + said)


def _count_repeats(run: MeasuredRun) -> int:
    return max(run.repeats, 1 + max(result.repeat for result in run.results))


def _find_known(harness: Harness, commit: str, run: MeasuredRun, origin: Origin) -> Evaluation | None:
    same = {"digest": origin.digest, "variant": run.variant, "options": origin.options}
    known = harness.evaluations.filter(commit=commit, origin__contains=same)
    return known.filter(dataset_version__dataset__name=run.dataset).first()


def fit_key(key: str) -> str:
    """A source's id as a case key: as it is, unless it is too long or can't be shown; then its end is a digest."""
    shown = "".join(character if character.isprintable() else " " for character in key).strip()
    if shown == key and len(key) <= LONGEST_KEY:
        return key
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{shown[: LONGEST_KEY - 13]}~{digest}"


def _store_cases(actor: Actor, harness: Harness, run: MeasuredRun) -> DatasetVersion:
    """The version with exactly these cases, or a known one of which the file has the most part only."""
    cases = {case.key: case for case in map(_build_case, run.cases)}
    return _find_whole(harness, run, cases) or import_dataset(actor, harness, run.dataset, [*cases.values()])


def _match_cases(harness: Harness, run: MeasuredRun) -> DatasetVersion | None:
    """The newest version that the harness is measured by, by the keys of its cases; None where that has no such name.

    What a file has of these cases is seldom whole, so it never becomes a version of them. Raises BrokenInput when the
    file has other keys.
    """
    versions = DatasetVersion.objects.filter(dataset__harness=harness, dataset__name=run.dataset)
    own = list(leave_out_imported(versions).order_by("-number"))
    if not own:
        return None
    keys = {fit_key(result.key) for result in run.results}
    for version in own:
        if version.cases.filter(key__in=keys).count() == len(keys):
            return version
    unknown = sorted(keys - set(own[0].cases.filter(key__in=keys).values_list("key", flat=True)))
    text = _(
        "%(harness)s is measured by %(dataset)s, which has no case %(key)s: give these results another dataset"
    )
    raise BrokenInput(text % {"harness": harness, "dataset": own[0], "key": unknown[0]})


def _find_whole(harness: Harness, run: MeasuredRun, cases: dict[str, CaseData]) -> DatasetVersion | None:
    """A known version of a set that this run did not get through: of what failed, files often have no request."""
    keys = {fit_key(key) for key in run.declared} | set(cases)
    told = {key: case for key, case in cases.items() if _has_request(case)}
    if len(told) == len(keys) or not told:
        return None
    for version in _list_with_keys(harness, run.dataset, keys):
        rows = {row.key: row for row in version.cases.filter(key__in=told)}
        if _are_same(told, rows):
            return version
    return None


def _list_with_keys(harness: Harness, dataset: str, keys: set[str]) -> QuerySet[DatasetVersion]:
    """The versions with exactly these case keys; their cases stay in the database."""
    versions = DatasetVersion.objects.filter(dataset__harness=harness, dataset__name=dataset)
    counted = versions.annotate(n=Count("cases"), known=Count("cases", filter=Q(cases__key__in=keys)))
    return counted.filter(n=len(keys), known=len(keys))


def _has_request(case: CaseData) -> bool:
    return any(case.request.get(name) for name in ("danmaku", "history", "user"))


def _are_same(cases: dict[str, CaseData], rows: dict[str, Any]) -> bool:
    names = list(asdict(next(iter(cases.values()))))
    there = [CaseData(**{name: getattr(rows[key], name) for name in names}) for key in cases]
    return digest_cases(there) == digest_cases(list(cases.values()))


def _build_case(case: MeasuredCase) -> CaseData:
    text = json.dumps(case.request, ensure_ascii=False)
    return CaseData(
        key=fit_key(case.key),
        category=str(make_storable(case.category))[:64],
        language=case.language[:8] or detect_language(text),
        split=case.split,
        request=make_storable(case.request),
        context=make_storable(case.context),
        fixtures={},
        expected=make_storable(case.expected),
    )


def _unique(results: Iterable[MeasuredResult]) -> tuple[list[MeasuredResult], list[str]]:
    """The first result of every (case, repeat), and what is said of the others."""
    kept: dict[tuple[str, int], MeasuredResult] = {}
    problems = []
    for result in results:
        if (result.key, result.repeat) in kept:
            what = {"key": result.key, "repeat": result.repeat}
            problems.append(
                _("case %(key)s, repeat %(repeat)s: more than one result; the first is taken") % what
            )
        else:
            kept[result.key, result.repeat] = result
    return list(kept.values()), problems


def _build_evaluation(harness: Harness, commit: str, version: DatasetVersion, run: MeasuredRun) -> Evaluation:
    """The evaluation without its results and origin, ended but for its state."""
    now, repeats = timezone.now(), _count_repeats(run)
    return Evaluation(
        harness=harness,
        commit=commit,
        dataset_version=version,
        splits=sorted({*version.cases.values_list("split", flat=True)}),
        model=_name(run.model),
        judge_commit="",
        judge_model=_name(run.judge),
        user_model=_name(run.user_model),
        repeats=repeats,
        currency=CURRENCY,
        total=version.cases.count() * repeats,
        started_at=now,
        finished_at=now,
    )


def _save(actor: Actor, evaluation: Evaluation, results: list[MeasuredResult]) -> None:
    """Store it with a row for every (case, repeat): what the source has not is an error."""
    cases = dict(evaluation.dataset_version.cases.values_list("key", "pk"))
    missing = list(_list_missing(cases, results, evaluation.repeats))
    errors = len(missing) + sum(bool(result.error_kind) for result in results)
    evaluation.state = EvaluationState.PARTIAL if errors else EvaluationState.FINISHED
    evaluation.created_by = actor.name
    evaluation.save()
    rows = (_build_row(evaluation, cases, result) for result in [*results, *missing])
    CaseResult.objects.bulk_create(rows, batch_size=BATCH)
    origin = evaluation.origin
    what: dict[str, Any] = {"file": origin["file"], "format": origin["format"], "commit": evaluation.commit}
    record(actor, "evaluation.imported", evaluation, **what, results=len(results), errors=errors)


def _list_missing(
    cases: Iterable[str], results: Iterable[MeasuredResult], repeats: int
) -> Iterator[MeasuredResult]:
    """What the source meant to make, and has not: an error each."""
    there = Counter((fit_key(result.key), result.repeat) for result in results)
    for key in cases:
        for repeat in range(repeats):
            if (key, repeat) not in there:
                yield MeasuredResult(key, repeat, error_kind=NOT_STARTED, error=_("not in the file"))


def _describe(run: MeasuredRun, origin: Origin, problems: list[str]) -> dict[str, Any]:
    described: dict[str, Any] = make_storable(
        {
            **{name: text for name, text in run.details.items() if text},
            "format": run.format,
            "variant": run.variant,
            "problems": problems[:MOST_PROBLEMS],
            **asdict(origin),
        }
    )
    return described


def _build_row(evaluation: Evaluation, cases: dict[str, int], result: MeasuredResult) -> CaseResult:
    fields = asdict(result)
    del fields["key"]
    cost = fields.pop("cost")
    for name in ("reasons", "findings", "reply", "trajectory", "error"):
        fields[name] = make_storable(fields[name])
    trajectory = fields["trajectory"]
    return CaseResult(
        evaluation=evaluation,
        case_id=cases[fit_key(result.key)],
        **{**fields, "error": fields["error"][:LONGEST_ERROR]},
        run_status=trajectory.get("status", ""),
        calls=len(trajectory.get("calls", ())),
        cost=None if cost is None else Decimal(f"{cost:.8f}"),
    )


def _name(text: str) -> str:
    return str(make_storable(text))[:LONGEST_NAME]
