"""What people do with the inbox: import failures, take those of an evaluation, ignore and reopen cases."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.adapters.formats.detect import read_file, read_records, show_name
from evolution.errors import LoopError
from evolution.loop import cases
from evolution.loop.cases import ImportReport
from evolution.models import Evaluation, FailureCase, Harness
from evolution.ports import Record, Rejected
from evolution.states import CaseState, EvaluationState
from evolution.transitions import move, record


class Upload(Protocol):
    """A file that came with a request, as Django hands it over."""

    name: str | None

    def read(self) -> bytes:
        """Return the whole content."""


def import_failures(
    actor: Actor,
    harness: Harness,
    sources: Iterable[Path | Upload],
    fmt: str = "auto",
    *,
    only_failures: bool = True,
    dry_run: bool = False,
) -> ImportReport:
    """Take the failures of files or uploads into the inbox; all of them, or none when a file can't be read.

    Raises BrokenInput for the first file that can't be read at all. Bad records are in the report.
    """
    actor.require(Role.DEVELOPER)
    report = ImportReport()
    with transaction.atomic():
        for name, records in _read(sources, fmt):
            cases.store_records(actor, harness, records, report, name=name, only_failures=only_failures)
        figures = {key: value for key, value in report.to_dict().items() if key != "problems"}
        record(actor, "harness.cases_imported", harness, **figures)
        transaction.set_rollback(dry_run)
    return report


def _read(sources: Iterable[Path | Upload], fmt: str) -> Iterator[tuple[str, Iterator[Record | Rejected]]]:
    for source in sources:
        if isinstance(source, Path):
            yield show_name(source), read_file(source, fmt)
        else:
            name = show_name(Path(source.name or "upload"))
            yield name, read_records(source.read(), name, fmt)


@transaction.atomic
def take_failures(actor: Actor, evaluation: Evaluation) -> int:
    """Take the failed cases of an evaluation into the inbox; returns how many came in or are open again."""
    actor.require(Role.DEVELOPER)
    if evaluation.state not in {EvaluationState.FINISHED, EvaluationState.PARTIAL}:
        what = {"evaluation": evaluation, "state": evaluation.get_state_display()}
        raise LoopError(_("%(evaluation)s is %(state)s; wait until it is finished") % what)
    taken = cases.take_failures(actor, evaluation)
    record(actor, "evaluation.failures_taken", evaluation, taken=taken)
    return taken


@transaction.atomic
def ignore_case(actor: Actor, case: FailureCase, reason: str) -> None:
    """Put a case aside; it is not clustered any more and says why."""
    actor.require(Role.DEVELOPER)
    if case.state != CaseState.IGNORED:
        move(case, CaseState.IGNORED, actor, reason, note=reason)


@transaction.atomic
def reopen_case(actor: Actor, case: FailureCase) -> None:
    """Take a case that was ignored or resolved back into the inbox."""
    actor.require(Role.DEVELOPER)
    if case.state != CaseState.OPEN:
        move(case, CaseState.OPEN, actor, note="")
