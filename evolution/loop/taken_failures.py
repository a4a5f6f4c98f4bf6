"""Stage 1: failed results of an evaluation become failure cases in the inbox."""

from typing import Any

from django.db import transaction

from evolution.actors import Actor
from evolution.loop.bulk_writing import insert_rows, update_rows
from evolution.loop.case_batches import embed_anew, reopen_seen_again
from evolution.loop.case_content import CONTENT, build_content
from evolution.loop.locks import lock_harness
from evolution.loop.search_text import insert_texts, store_texts
from evolution.models import CaseResult, Evaluation, FailureCase
from evolution.ports import Record
from evolution.states import Split

SOURCE = "evaluation"
# Failures of these splits go into the inbox; sealed and calibration cases are not to be looked at.
OPEN_SPLITS = (Split.DEV, Split.GUARD)
_CHANGED = (
    *CONTENT,
    "raw_digest",
    "dataset_case",
    "evaluation",
    "count",
    "embedded_text",
    "cluster",
    "strength",
)


def take_failures(actor: Actor, evaluation: Evaluation) -> int:
    """Take the failed cases of an evaluation into the inbox; returns how many are new there or open again.

    A dataset case has one failure per harness, which later evaluations update; an older evaluation changes
    nothing. An error is not a failure, and sealed and calibration cases are left alone.
    """
    harness = evaluation.harness
    with transaction.atomic():
        lock_harness(harness)
        known = {case.source_id: case for case in FailureCase.objects.filter(harness=harness, source=SOURCE)}
        new, changed = [], []
        for result in _failed_results(evaluation):
            source_id, fields = _read_result(evaluation, result)
            case = known.get(source_id)
            if case is None:
                new.append(FailureCase(harness=harness, source=SOURCE, source_id=source_id, **fields))
            elif (case.evaluation_id or 0) < evaluation.pk:
                _change(case, fields)
                changed.append(case)
        insert_rows(new)
        update_rows(changed, _CHANGED)
        insert_texts(new)
        store_texts(changed)
        return len(new) + reopen_seen_again(actor, changed)


def _change(case: FailureCase, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        setattr(case, name, value)
    case.count += 1
    # It may have come from a file before.
    case.raw_digest = ""
    embed_anew(case)


def has_passed(accuracy: float, effectiveness: float) -> bool:
    """Say whether a score is a full pass; everything below is a failure of the inbox."""
    return accuracy >= 1 and effectiveness >= 1


def _failed_results(evaluation: Evaluation) -> list[CaseResult]:
    """The worst repeat of every case that failed at least once."""
    results = (
        CaseResult.objects.filter(evaluation=evaluation, accuracy__isnull=False, effectiveness__isnull=False)
        .filter(case__split__in=OPEN_SPLITS)
        .select_related("case")
        .order_by("case__key", "accuracy", "effectiveness", "repeat")
        .distinct("case__key")
    )
    return [result for result in results if not has_passed(result.accuracy or 0, result.effectiveness or 0)]


def _read_result(evaluation: Evaluation, result: CaseResult) -> tuple[str, dict[str, Any]]:
    """The id of a failure, and the fields that the evaluation sets."""
    item = _result_record(evaluation, result)
    content = build_content(evaluation.harness, item, language=result.case.language)
    return item.source_id, {**content, "dataset_case": result.case, "evaluation": evaluation}


def _result_record(evaluation: Evaluation, result: CaseResult) -> Record:
    case = result.case
    scores = {"accuracy": result.accuracy, "effectiveness": result.effectiveness}
    failed = [name for name, score in scores.items() if (score or 0) < 1]
    reasons = [str(result.reasons.get(name) or "") for name in failed]
    return Record(
        source=SOURCE,
        source_id=f"{evaluation.dataset_version.dataset.name}/{case.key}",
        failed=True,
        line=0,
        request=case.request,
        context=case.context,
        trajectory=result.trajectory,
        reply=result.reply,
        symptom="\n".join(dict.fromkeys(reason for reason in reasons if reason)),
        scores=scores,
        findings=result.findings,
        category=case.category,
        harness_commit=evaluation.commit,
    )
