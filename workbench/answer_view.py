"""The answers of diagnosers as pages show them: each with what it took and was shown, and two side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evolution.models import Diagnosis, Event, Proposal
from evolution.queries.clusters import Quote, list_quotes_of
from evolution.queries.diagnoses import (
    Answer,
    ShownCase,
    list_decisions,
    list_shown_cases_of,
    list_twins_of,
)
from evolution.states import DiagnosisState, ProposalState
from workbench.fault_names import is_outside
from workbench.shown_view import ShownView, view_all_shown

ENDED = {ProposalState.REJECTED, ProposalState.RELEASED}


@dataclass(frozen=True)
class HypothesisView:
    """One diagnosis with what its part of the page needs."""

    diagnosis: Diagnosis
    quotes: list[Quote]
    # who accepted, rejected or dealt with it
    decision: Event | None = None
    # to choose from where the harness is not to blame
    cases: list[ShownCase] = field(default_factory=list)
    # case -> where it went wrong first
    wrong_turns: list[dict[str, Any]] = field(default_factory=list)
    # drafts for other clusters of the very same changes of the same file
    twins: list[Proposal] = field(default_factory=list)

    @property
    def is_outside(self) -> bool:
        """Whether no change of the harness would mend it."""
        return is_outside(self.diagnosis.part)

    @property
    def explained(self) -> int:
        """Of how many cases it quotes something, or says where they went wrong."""
        quoted = {quote.case_id for quote in self.quotes}
        return len(quoted | {row.get("case") for row in self.wrong_turns})

    @property
    def has_living_draft(self) -> bool:
        """Whether a proposal of it is neither rejected nor released."""
        return any(proposal.state not in ENDED for proposal in self.diagnosis.proposals.all())

    @property
    def compared_drafts(self) -> tuple[int, int] | None:
        """Its newest two drafts, the older first; None where it has no two."""
        drafts = sorted(each.pk for each in self.diagnosis.proposals.all() if each.head_commit)
        return (drafts[-2], drafts[-1]) if len(drafts) > 1 else None


@dataclass(frozen=True)
class AnswerView:
    """One answer."""

    answer: Answer
    hypotheses: list[HypothesisView]
    # None where nothing was kept
    shown: ShownView | None

    @property
    def is_rejected(self) -> bool:
        """Whether nothing of it stands."""
        return self.answer.is_rejected


def view_answers(answers: Sequence[Answer]) -> list[AnswerView]:
    """The answers for parts/answer.html."""
    decisions = list_decisions(answers)
    hypotheses = _view_hypotheses([each for answer in answers for each in answer.diagnoses], decisions)
    shown = view_all_shown([answer.exchange for answer in answers if answer.exchange])
    return [
        AnswerView(
            answer,
            [hypotheses[each.pk] for each in answer.diagnoses],
            shown[answer.exchange.pk] if answer.exchange else None,
        )
        for answer in answers
    ]


def _view_hypotheses(
    diagnoses: Sequence[Diagnosis], decisions: Mapping[int, Event] | None = None
) -> dict[int, HypothesisView]:
    """Diagnoses by their ids, with the cases to choose from where there is something to do about them."""
    quotes, twins = list_quotes_of(diagnoses), list_twins_of(diagnoses)
    cases = list_shown_cases_of([each for each in diagnoses if _is_waiting(each)])
    return {
        each.pk: HypothesisView(
            each,
            quotes[each.pk],
            (decisions or {}).get(each.pk) if each.state != DiagnosisState.OPEN else None,
            cases.get(each.pk, []),
            [row for row in each.first_wrong_turns if _is_place(row)],
            twins[each.pk],
        )
        for each in diagnoses
    }


def _is_waiting(diagnosis: Diagnosis) -> bool:
    is_rejected = diagnosis.state == DiagnosisState.REJECTED
    return is_outside(diagnosis.part) and not is_rejected and not diagnosis.handled_as


@dataclass(frozen=True)
class Compared:
    """Two answers about one cluster."""

    # for each hypothesis, the rank of one of the other answer that blames the same file, else the same part
    first: list[tuple[HypothesisView, int | None]]
    second: list[tuple[HypothesisView, int | None]]
    # cases that both were shown, and all that either was
    both_cases: int
    all_cases: int
    # of the first hypotheses; None where one has none
    same_part: bool | None
    same_path: bool | None
    same_category: bool | None
    # passages that both quote
    both_quotes: int


def compare_answers(first: Answer, second: Answer) -> Compared:
    """What two answers have in common."""
    cases = [_shown_cases(answer) for answer in (first, second)]
    quotes = [
        {_place(row) for each in answer.diagnoses for row in each.evidence if isinstance(row, dict)}
        for answer in (first, second)
    ]
    best = [answer.diagnoses[0] if answer.diagnoses else None for answer in (first, second)]
    views = _view_hypotheses([*first.diagnoses, *second.diagnoses])
    return Compared(
        first=[(views[each.pk], _find_like(each, second)) for each in first.diagnoses],
        second=[(views[each.pk], _find_like(each, first)) for each in second.diagnoses],
        both_cases=len(cases[0] & cases[1]),
        all_cases=len(cases[0] | cases[1]),
        same_part=_is_same(best, "part"),
        same_path=_is_same(best, "path"),
        same_category=_is_same(best, "category"),
        both_quotes=len(quotes[0] & quotes[1]),
    )


def _is_place(row: Any) -> bool:
    """Whether a first wrong turn leads to a case; what a model wrote is kept as it wrote it."""
    return isinstance(row, dict) and isinstance(row.get("case"), int)


def _shown_cases(answer: Answer) -> set[int]:
    shown = answer.shown.get("cases")
    return {pk for pk in shown if isinstance(pk, int)} if isinstance(shown, list) else set()


def _place(row: dict[str, Any]) -> tuple[str, str]:
    return str(row.get("case")), " ".join(str(row.get("quote", "")).split())


def _is_same(best: Sequence[Diagnosis | None], field_name: str) -> bool | None:
    first, second = best
    if first is None or second is None:
        return None
    return bool(getattr(first, field_name) == getattr(second, field_name))


def _find_like(diagnosis: Diagnosis, other: Answer) -> int | None:
    """The rank of the one that blames the same file, else the same part; of several the one that is most alike."""
    same_path = [each for each in other.diagnoses if diagnosis.path and each.path == diagnosis.path]
    same_part = [each for each in other.diagnoses if each.part == diagnosis.part and not each.path]
    found = same_path or same_part
    return max(found, key=lambda each: _likeness(diagnosis, each)).rank if found else None


def _likeness(one: Diagnosis, other: Diagnosis) -> tuple[bool, bool, int, int]:
    """Of two that blame the same: whether words and kind of fault are the same, too, and how many cases both quote."""
    cases = [
        {str(row.get("case")) for row in each.evidence if isinstance(row, dict)} for each in (one, other)
    ]
    same_text = one.hypothesis == other.hypothesis
    return same_text, one.category == other.category, len(cases[0] & cases[1]), -other.rank
