"""Beside the stages: failures become cases of a dataset, in a new immutable version of it.

What a right reply states is for people to write: a failure knows only what was wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.demonstration import CaseData
from evolution.errors import LoopError
from evolution.loop.datasets import import_dataset
from evolution.loop.fixtures import take_fixtures
from evolution.models import Dataset, DatasetCase, DatasetVersion, FailureCase, Harness
from harness_repo.runtime.context import normalise_request

_FIELDS = ("key", "category", "language", "split", "request", "context", "fixtures", "expected", "faults")
# What an import put beside the room, for other uses: nothing that a prompt should see.
_NOT_CONTEXT = ("tools", "model")


@dataclass(frozen=True)
class Added:
    """What became of failures that were to be added to a dataset."""

    version: DatasetVersion
    # keys by what became of them; `kept` were in it as they are
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def build_case(
    case: FailureCase,
    key: str,
    split: str,
    *,
    category: str = "",
    expected: Mapping[str, Any] | None = None,
    request: Mapping[str, Any] | None = None,
    fixtures: Mapping[str, Any] | None = None,
    turn: int | None = None,
) -> CaseData:
    """A dataset case from a failure; what is not given is taken from it, the request as it was before `turn`.

    Raises LoopError when there is nothing that an agent could be asked.
    """
    asked = dict(request) if request is not None else propose_request(case, turn)
    language = case.language or "zh"
    if not has_question(asked):
        raise LoopError(_("%(case)s has no request that an agent could be asked") % {"case": case})
    taken = take_fixtures(case.trajectory).fixtures if fixtures is None else dict(fixtures)
    return CaseData(
        key=key,
        category=category or case.category or "imported",
        language=language,
        split=split,
        request=asked,
        context={name: value for name, value in _dict(case.context).items() if name not in _NOT_CONTEXT},
        fixtures=taken,
        expected={"facts": [], "forbidden": [], **(expected or {}), "language": language},
        faults=list(case.dataset_case.faults) if case.dataset_case else [],
    )


def propose_request(case: FailureCase, turn: int | None = None) -> dict[str, Any]:
    """What the agent was asked when it went wrong: the user's words before the agent's message `turn`.

    What was said before that becomes the history. Without a turn, and where the user spoke but once, it is the
    failure's request.
    """
    said = _said_before(case.trajectory, turn)
    last = next((place for place in reversed(range(len(said))) if said[place]["role"] == "user"), None)
    request = _dict(case.request)
    if turn is None or last is None or sum(line["role"] == "user" for line in said) < 2:
        return request
    first = last
    while first and said[first - 1]["role"] == "user":
        first -= 1
    asked = [{"user": "user", "text": line["content"]} for line in said[first : last + 1]]
    return {**request, "danmaku": asked, "history": said[:first]}


def has_question(request: Mapping[str, Any]) -> bool:
    """Whether an agent could be asked this: it has a line of a viewer, or a simulated user with a goal."""
    user = request.get("user")
    if isinstance(user, dict) and user.get("goal"):
        return True
    try:
        return bool(normalise_request(request).danmaku)
    except (TypeError, ValueError, AttributeError):
        return False


def _said_before(trajectory: Any, turn: int | None) -> list[dict[str, str]]:
    """What user and agent said in words before the agent's message of that number."""
    messages = _dict(trajectory).get("messages")
    said: list[dict[str, str]] = []
    number = 0
    for message in messages if isinstance(messages, list) else []:
        role = str(message.get("role")) if isinstance(message, dict) else ""
        number += role == "assistant"
        if turn is not None and number >= turn:
            break
        content = message.get("content") if role in ("user", "assistant") else None
        if isinstance(content, str) and content.strip():
            said.append({"role": role, "content": content})
    return said


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@transaction.atomic
def add_cases(
    actor: Actor, harness: Harness, name: str, cases: Sequence[tuple[FailureCase, CaseData]]
) -> Added:
    """Make a version of the dataset with these cases beside those of its newest one; the failures point at them.

    Adding what is there already changes nothing. A failure that was added before is replaced when it is written
    otherwise now. Raises LoopError when a key is another case's.
    """
    Dataset.objects.get_or_create(harness=harness, name=name)
    # Two people at once would each build on the version without the other's.
    dataset = Dataset.objects.select_for_update().get(harness=harness, name=name)
    newest = dataset.versions.order_by("-number").first()
    known = {old.key: to_case_data(old) for old in newest.cases.all()} if newest else {}
    added: dict[str, list[str]] = {"added": [], "changed": [], "kept": []}
    for failure, case in cases:
        added[_sort(failure, case, known, dataset)].append(case.key)
        known[case.key] = case
    version = newest if newest and not (added["added"] or added["changed"]) else None
    version = version or import_dataset(actor, harness, name, list(known.values()))
    _link(version, cases)
    return Added(version, **added)


def find_newest(failure: FailureCase) -> DatasetCase | None:
    """The dataset case that a failure is tied to, as the newest version has it that has one of its key."""
    tied = failure.dataset_case
    if tied is None:
        return None
    found = DatasetCase.objects.filter(version__dataset=tied.version.dataset_id, key=tied.key)
    return found.select_related("version__dataset").order_by("-version__number").first()


def to_case_data(case: DatasetCase) -> CaseData:
    """A stored case as it was when it was imported."""
    return CaseData(**{name: getattr(case, name) for name in _FIELDS})


def _sort(failure: FailureCase, case: CaseData, known: Mapping[str, CaseData], dataset: Dataset) -> str:
    old = known.get(case.key)
    if old is None:
        return "added"
    if asdict(old) == asdict(case):
        return "kept"
    if not _is_own(failure, case.key, dataset):
        values = {"dataset": dataset.name, "key": case.key}
        raise LoopError(
            _("%(dataset)s has another case with the key %(key)s; choose a key of its own") % values
        )
    return "changed"


def _is_own(failure: FailureCase, key: str, dataset: Dataset) -> bool:
    """Whether the key stands for this failure in this dataset."""
    linked = failure.dataset_case
    return linked is not None and linked.key == key and linked.version.dataset_id == dataset.pk


def _link(version: DatasetVersion, cases: Sequence[tuple[FailureCase, CaseData]]) -> None:
    """Tie the failures to their cases: models see no guard case, and what passes is resolved."""
    stored = {case.key: case for case in version.cases.filter(key__in=[case.key for _failure, case in cases])}
    for failure, case in cases:
        failure.dataset_case = stored[case.key]
    FailureCase.objects.bulk_update([failure for failure, _case in cases], ["dataset_case"], batch_size=500)
