"""The flags of a proposal: of what its branch changes, against what its drafter was shown."""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

from django.db.models import Q

from evolution.loop.flags import Flag, find_flags
from evolution.loop.repositories import open_repository
from evolution.models import Exchange, FailureCase, Harness, Proposal, Step

# Pages ask for the same flags again and again.
_MOST_KEPT = 64
_kept: OrderedDict[tuple[Any, ...], list[Flag]] = OrderedDict()
_lock = Lock()


def flag_proposal(proposal: Proposal) -> list[Flag]:
    """What a reviewer must not overlook between the base and the head of the records; none without a branch.

    Raises HarnessRepoError when the repository can't be read.
    """
    if not proposal.head_commit or not proposal.base_commit:
        return []
    cases = list_shown_cases(proposal)
    return _flag_change(proposal.harness, proposal.base_commit, proposal.head_commit, cases)


def flag_step(step: Step) -> list[Flag]:
    """What must not be overlooked in what a step changes altogether, what people settled in it too.

    Raises HarnessRepoError when the repository can't be read.
    """
    proposals = step.merged.select_related("harness", "diagnosis")
    cases = {case.pk: case for proposal in proposals for case in list_shown_cases(proposal)}
    return _flag_change(
        step.harness, step.base_commit, step.candidate_commit, [cases[pk] for pk in sorted(cases)]
    )


def _flag_change(
    harness: Harness, base_commit: str, head_commit: str, cases: list[FailureCase]
) -> list[Flag]:
    key = (harness.path, base_commit, head_commit, *((case.pk, case.updated_at) for case in cases))
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    repository = open_repository(harness)
    base, head = (repository.files(commit) for commit in (base_commit, head_commit))
    flags = find_flags(base, head, [tell_case(case) for case in cases])
    with _lock:
        _kept[key] = flags
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return flags


def count_flags(proposal: Proposal, base: Mapping[str, bytes], head: Mapping[str, bytes]) -> dict[str, int]:
    """How many flags a version of the branch has, and how many of them are dangerous; for the manifest."""
    flags = find_flags(base, head, [tell_case(case) for case in list_shown_cases(proposal)])
    return {"total": len(flags), "dangerous": sum(flag.is_dangerous for flag in flags)}


def list_shown_cases(proposal: Proposal) -> list[FailureCase]:
    """The cases that diagnoser and editor were shown for it, as far as they are still there."""
    asked = Q(proposal=proposal)
    diagnosis = proposal.diagnosis
    if diagnosis is not None and diagnosis.exchange_id is not None:
        asked |= Q(pk=diagnosis.exchange_id)
    shown = Exchange.objects.filter(asked).values_list("shown", flat=True)
    ids = {number for entry in shown for number in _numbers(entry.get("cases"))}
    ids |= set(_numbers([item.get("case") for item in (diagnosis.evidence if diagnosis else [])]))
    return list(FailureCase.objects.filter(pk__in=ids).order_by("pk"))


def tell_case(case: FailureCase) -> str:
    """All that a case says, a text below the other, without the prompt that the agent was sent."""
    messages = case.trajectory.get("messages") or []
    said = [entry for entry in messages if isinstance(entry, dict) and entry.get("role") != "system"]
    rest = {name: value for name, value in case.trajectory.items() if name not in {"messages", "prompt"}}
    parts = (case.request, said, rest, case.reply, case.symptom, case.findings)
    return "\n".join(text for part in parts for text in _texts(part))


def _numbers(values: Any) -> Iterator[int]:
    for value in values if isinstance(values, list) else []:
        if str(value).isdecimal():
            yield int(value)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield _open(value)
    elif isinstance(value, dict):
        for entry in value.values():
            yield from _texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _open(text: str) -> str:
    """A text that is JSON, such as a tool's result, with its letters as they are read."""
    if not text.startswith(("{", "[")) or "\\u" not in text:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text
