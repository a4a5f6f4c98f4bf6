"""Stage 1: records of an import, and failed results of an evaluation, become failure cases in the inbox.

Knows identity (same source id, same content) and counts; reading files is the work of `adapters.formats`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.models import CaseResult, Evaluation, FailureCase, Harness, Sighting
from evolution.ports import Record, Rejected
from evolution.states import CaseState, Split
from evolution.transitions import move
from harness_repo.runtime.context import normalise_request

# Records that are looked up and written together.
BATCH = 500
# Failures of these splits go into the inbox; sealed and calibration cases are not to be looked at.
OPEN_SPLITS = (Split.DEV, Split.GUARD)

_CONTENT = (
    "request", "context", "trajectory", "reply", "symptom", "scores", "findings", "category", "language",
    "title", "harness_commit", "fingerprint",
)  # fmt: skip


@dataclass
class ImportReport:
    """What became of the records of an import; `read` is the sum of the others."""

    read: int = 0
    new: int = 0
    duplicate: int = 0
    updated: int = 0
    passed: int = 0
    rejected: int = 0
    # one line per rejected record
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON; `problems` only when there are some."""
        figures = asdict(self)
        if not self.problems:
            figures.pop("problems")
        return figures


def store_records(
    actor: Actor,
    harness: Harness,
    records: Iterable[Record | Rejected],
    report: ImportReport,
    *,
    name: str = "",
    only_failures: bool = True,
) -> None:
    """Take the records of one file into the inbox, adding to the report.

    The same id with the same content is a duplicate, with other content an update. The same failure under
    another id is counted on the case that is there. A resolved case that is seen again is open again; an
    ignored one stays so.
    """
    wanted = []
    for item in records:
        report.read += 1
        if isinstance(item, Rejected):
            report.rejected += 1
            report.problems.append(_describe_rejected(item, name))
        elif only_failures and not item.failed:
            report.passed += 1
        else:
            wanted.append(item)
    with transaction.atomic():
        # Two imports at once would both miss the other's cases.
        Harness.objects.select_for_update(no_key=True).get(pk=harness.pk)
        identified = _with_own_ids(wanted)
        for start in range(0, len(identified), BATCH):
            _Batch(actor, harness, report).store(identified[start : start + BATCH])


def _describe_rejected(item: Rejected, name: str) -> str:
    what = {"name": name, "line": item.line, "number": item.number, "problem": item.reason}
    if not name:
        return item.reason
    if not item.number:
        return _("%(name)s, line %(line)d: %(problem)s") % what
    return _("%(name)s, line %(line)d, record %(number)d: %(problem)s") % what


def _with_own_ids(records: Sequence[Record]) -> list[Record]:
    """Give the second and later records of one id in a file a suffix, and shorten ids that are too long.

    The same file always gets the same ids. The first record of an id keeps it, also when the id looks like a suffixed
    one.
    """
    short = [replace(item, source_id=_shorten_id(item.source_id)) for item in records]
    taken = {(item.source, item.source_id) for item in short}
    times: Counter[tuple[str, str]] = Counter()
    own = []
    for item in short:
        first = own_key = (item.source, item.source_id)
        times[first] += 1
        while times[first] > 1 and own_key in taken:
            own_key = (item.source, f"{item.source_id}~{times[first]}")
            times[first] += own_key in taken
        taken.add(own_key)
        own.append(replace(item, source_id=own_key[1]))
    return own


def _shorten_id(source_id: str) -> str:
    if len(source_id) <= 180:
        return source_id
    return f"{source_id[:120]}/{hashlib.sha256(source_id.encode()).hexdigest()[:32]}"


class _Batch:
    """Some records looked up with three queries and written with a few."""

    def __init__(self, actor: Actor, harness: Harness, report: ImportReport) -> None:
        self.actor, self.harness, self.report = actor, harness, report
        self.by_id: dict[tuple[str, str], FailureCase] = {}
        self.by_fingerprint: dict[str, FailureCase] = {}
        self.sightings: dict[tuple[str, str], Sighting] = {}
        self.new: list[FailureCase] = []
        self.updated: dict[int, FailureCase] = {}
        self.new_sightings: list[Sighting] = []
        self.gone_sightings: list[int] = []
        self.counts: Counter[int] = Counter()
        self.seen_again: dict[int, FailureCase] = {}

    def store(self, records: Sequence[Record]) -> None:
        """Sort the records into new, duplicate and updated, then write."""
        contents = [build_content(self.harness, item) for item in records]
        self._look_up(records, contents)
        for item, content in zip(records, contents, strict=True):
            self._sort(item, content)
        self._write()

    def _look_up(self, records: Sequence[Record], contents: Sequence[dict[str, Any]]) -> None:
        ids = [item.source_id for item in records]
        cases = FailureCase.objects.filter(harness=self.harness)
        self.by_id = {(case.source, case.source_id): case for case in cases.filter(source_id__in=ids)}
        fingerprints = [content["fingerprint"] for content in contents]
        twins = cases.filter(fingerprint__in=fingerprints).order_by("-pk")
        self.by_fingerprint = {case.fingerprint: case for case in twins}
        sightings = Sighting.objects.filter(harness=self.harness, source_id__in=ids).select_related("case")
        self.sightings = {(sighting.source, sighting.source_id): sighting for sighting in sightings}

    def _sort(self, item: Record, content: dict[str, Any]) -> None:
        known = self.by_id.get((item.source, item.source_id))
        if known is not None:
            self._sort_known(known, content)
            return
        sighting = self.sightings.get((item.source, item.source_id))
        if sighting is not None and sighting.case.fingerprint == content["fingerprint"]:
            self.report.duplicate += 1
            return
        if sighting is not None:
            # It used to be identical to another case, and no longer is.
            self.gone_sightings.append(sighting.pk)
            self.counts[sighting.case_id] -= 1
        twin = self.by_fingerprint.get(content["fingerprint"])
        if twin is not None:
            self._count(twin, item)
        else:
            self._add(item, content)
        if sighting is not None:
            self.report.updated += 1
        elif twin is not None:
            self.report.duplicate += 1
        else:
            self.report.new += 1

    def _sort_known(self, known: FailureCase, content: dict[str, Any]) -> None:
        if all(getattr(known, name) == value for name, value in content.items()):
            self.report.duplicate += 1
            return
        for name, value in content.items():
            setattr(known, name, value)
        self.updated[known.pk] = known
        self.seen_again[known.pk] = known
        self.report.updated += 1

    def _count(self, twin: FailureCase, item: Record) -> None:
        self.new_sightings.append(
            Sighting(harness=self.harness, case=twin, source=item.source, source_id=item.source_id)
        )
        if twin in self.new:
            twin.count += 1
        else:
            self.counts[twin.pk] += 1
            self.seen_again[twin.pk] = twin

    def _add(self, item: Record, content: dict[str, Any]) -> None:
        case = FailureCase(harness=self.harness, source=item.source, source_id=item.source_id, **content)
        self.new.append(case)
        self.by_fingerprint[case.fingerprint] = case

    def _write(self) -> None:
        FailureCase.objects.bulk_create(self.new, batch_size=BATCH)
        FailureCase.objects.bulk_update(self.updated.values(), _CONTENT, batch_size=100)
        Sighting.objects.filter(pk__in=self.gone_sightings).delete()
        Sighting.objects.bulk_create(self.new_sightings, batch_size=BATCH)
        counted = list(FailureCase.objects.filter(pk__in=self.counts).only("count"))
        for case in counted:
            case.count += self.counts[case.pk]
        FailureCase.objects.bulk_update(counted, ["count"], batch_size=BATCH)
        for case in self.seen_again.values():
            reopen_seen_again(self.actor, case)


def reopen_seen_again(actor: Actor, case: FailureCase) -> bool:
    """Open a resolved case again; an ignored one stays ignored."""
    if case.state != CaseState.RESOLVED:
        return False
    move(case, CaseState.OPEN, actor, "seen again")
    return True


def build_content(harness: Harness, item: Record) -> dict[str, Any]:
    """Build the fields of a failure case that depend on the record's content alone."""
    text = request_text(item.request)
    return {
        "request": item.request,
        "context": item.context,
        "trajectory": item.trajectory,
        "reply": item.reply,
        "symptom": item.symptom,
        "scores": item.scores,
        "findings": item.findings,
        "category": item.category[:64],
        "language": detect_language(text or item.reply),
        "title": _title(text or item.symptom or item.reply or item.source_id),
        "harness_commit": item.harness_commit,
        "fingerprint": _fingerprint(harness, item),
    }


def request_text(request: dict[str, Any]) -> str:
    """Return what the users said, the danmaku of one request joined; empty when the request can't be read."""
    try:
        return " / ".join(entry.text for entry in normalise_request(request).danmaku)
    except (TypeError, ValueError):
        return ""


def detect_language(text: str) -> str:
    """Return zh when the text has a Chinese character, else en."""
    return "zh" if any("\u4e00" <= character <= "\u9fff" for character in text) else "en"


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"


def _fingerprint(harness: Harness, item: Record) -> str:
    """SHA-256 of harness, request, what was said and called, reply and symptom; without ids and system prompt."""
    said = [
        [
            message.get("role"),
            message.get("content"),
            [_call(call) for call in message.get("tool_calls") or []],
        ]
        for message in item.trajectory.get("messages") or []
        if message.get("role") != "system"
    ]
    what = [harness.pk, item.request, said, item.reply, item.symptom]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _call(call: Any) -> Any:
    return call.get("function", call) if isinstance(call, dict) else call


def take_failures(actor: Actor, evaluation: Evaluation) -> int:
    """Take the failed cases of an evaluation into the inbox; returns how many are new there or open again.

    A dataset case has one failure per harness, which later evaluations update; an older evaluation changes
    nothing. An error is not a failure, and sealed and calibration cases are left alone.
    """
    harness = evaluation.harness
    with transaction.atomic():
        Harness.objects.select_for_update(no_key=True).get(pk=harness.pk)
        known = {
            case.source_id: case for case in FailureCase.objects.filter(harness=harness, source="evaluation")
        }
        new, changed = [], []
        for result in _failed_results(evaluation):
            item = _result_record(evaluation, result)
            fields = {
                **build_content(harness, item),
                "language": result.case.language,
                "dataset_case": result.case,
                "evaluation": evaluation,
            }
            case = known.get(item.source_id)
            if case is None:
                new.append(
                    FailureCase(harness=harness, source="evaluation", source_id=item.source_id, **fields)
                )
            elif (case.evaluation_id or 0) < evaluation.pk:
                for name, value in fields.items():
                    setattr(case, name, value)
                case.count += 1
                changed.append(case)
        FailureCase.objects.bulk_create(new, batch_size=BATCH)
        names = [*_CONTENT, "dataset_case", "evaluation", "count"]
        FailureCase.objects.bulk_update(changed, names, batch_size=100)
        return len(new) + sum(reopen_seen_again(actor, case) for case in changed)


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


def _result_record(evaluation: Evaluation, result: CaseResult) -> Record:
    case = result.case
    scores = {"accuracy": result.accuracy, "effectiveness": result.effectiveness}
    failed = [name for name, score in scores.items() if (score or 0) < 1]
    reasons = [str(result.reasons.get(name) or "") for name in failed]
    return Record(
        source="evaluation",
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
