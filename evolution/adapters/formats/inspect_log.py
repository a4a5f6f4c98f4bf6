"""Logs of Inspect, .json or .eval; a record is a sample in one epoch.

All scores of a sample count, those of an object each by itself: C and true are 1, P is 0.5, I, N and false 0. What the
scorer said is kept as a finding. A score that is no number, NaN for one, is none. See `results.inspect_log`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from evolution.adapters.formats.items import Item, Where, attempt
from evolution.adapters.formats.logged_runs import find_commit
from evolution.adapters.formats.measured import build_record, open_document
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, read_time
from evolution.adapters.formats.values import Parser, RecordProblem, escape, with_nan
from evolution.adapters.results import inspect_log
from evolution.adapters.results.eval_archive import is_log, open_log
from evolution.adapters.results.numbers import NoScore
from evolution.adapters.results.wanted import Wanted
from evolution.errors import BrokenInput
from evolution.ports import Record, Rejected

NAME = SOURCE = inspect_log.FORMAT


def fits(value: Any) -> bool:
    """Say whether a JSON value is such a log."""
    return inspect_log.fits(value)


def fits_archive(names: list[str]) -> bool:
    """Say whether an archive with these members is an .eval log."""
    return is_log(names)


def read(items: Iterator[Item], where: Where) -> Iterator[Record | Rejected]:
    """Read the samples of .json logs."""
    for item in items:
        try:
            document = open_document(item)
        except RecordProblem as problem:
            yield Rejected(item.line, str(problem), item.number)
            continue
        yield from _read_samples(document, as_list(document.get("samples")), where, item.line)


def read_archive(stream: BinaryIO, where: Where) -> Iterator[Record | Rejected]:
    """Read the samples of an .eval log, one by one; a sample stands in a file of its own, and so on line 1."""
    try:
        with open_log(stream, where.name, _parse) as (header, samples):
            yield from _read_samples(header, samples, where, 1)
    except BrokenInput as failure:
        yield Rejected(1, escape(str(failure)))


def _parse(data: bytes) -> Any:
    """The JSON of a member; ValueError when it is none."""
    try:
        text = data.decode("utf-8-sig")
        # A member is a value and nothing else.
        return with_nan(Parser().parse(text.strip()).value)
    except RecursionError:
        raise ValueError(_("nested too deep to be read")) from None


def _read_samples(
    header: Mapping[str, Any], samples: Iterable[Any], where: Where, line: int
) -> Iterator[Record | Rejected]:
    run = as_dict(header.get("eval"))
    number = 0
    for number, sample in enumerate(samples, 1):
        if isinstance(sample, dict):
            yield attempt(partial(_read_sample, sample, run, where, line), line, number)
        else:
            yield Rejected(line, escape(str(sample or _("a record must be an object"))), number)
    if not number:
        status = as_text(header.get("status"))
        yield Rejected(line, _("the log has no samples (its status: %(status)s)") % {"status": status})


def _read_sample(sample: dict[str, Any], run: dict[str, Any], where: Where, line: int) -> Record:
    reduced = inspect_log.reduce_sample(sample)
    named = dict(inspect_log.list_scores(reduced))
    model = as_text(run.get("model"))
    result = inspect_log.read_sample(reduced, next(iter(named), ""), model, Wanted())
    metadata = as_dict(sample.get("metadata"))
    commit = as_text(as_dict(run.get("revision")).get("commit"))
    return build_record(
        result,
        source=SOURCE,
        source_id=_identify(sample, run, where),
        line=line,
        scores=dict(_list_scores(named)),
        context={
            "task": as_text(run.get("task")),
            "sample": as_text(sample.get("id")),
            "epoch": result.repeat + 1,
            "model": model,
            "revision": commit,
        },
        findings=_list_findings(as_dict(reduced.get("scores"))),
        category=as_text(metadata.get("category")),
        harness_commit=find_commit(commit),
        happened_at=read_time(sample.get("started_at")) or read_time(run.get("created")),
    )


def _identify(sample: Mapping[str, Any], run: Mapping[str, Any], where: Where) -> str:
    """The sample's own id, which older logs have not: the run's, the sample's and the epoch, then."""
    named = as_text(run.get("run_id")) or where.stem
    return (
        as_text(sample.get("uuid"))
        or f"{named}/{as_text(sample.get('id'))}/{as_text(sample.get('epoch')) or 1}"
    )


def _list_scores(named: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in named.items():
        try:
            yield name, inspect_log.grade_value(value, Wanted())["effectiveness"]
        except NoScore:
            # Of a scale of its own, perhaps, which a rule may have a limit for.
            if isinstance(value, int | float) and abs(value) < float("inf"):
                yield name, value


def _list_findings(scores: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, score in scores.items():
        if why := as_text(as_dict(score).get("explanation")).strip():
            yield {"kind": name, "text": escape(why)}
