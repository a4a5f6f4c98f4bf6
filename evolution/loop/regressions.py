"""Stage 6: two evaluations, case by case: what was fixed, what broke, and the verdict over it.

Reads the records and stores the outcome; every decision is `verdict`'s.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict

from evolution.loop.evaluation import ENDED, describe_faults
from evolution.loop.flips import CasePair, CaseScores
from evolution.loop.runners import detail_runner
from evolution.loop.verdict import Policy, RunFacts, VerdictFigures, decide
from evolution.models import DatasetCase, Evaluation, Verdict

# accuracy and effectiveness of one repeat; None for an error
Scores = tuple[float | None, float | None]


def load_pairs(base: Evaluation, candidate: Evaluation) -> list[CasePair]:
    """Return every case that one of the two evaluations was to measure, by case key."""
    before, after = load_scores(base), load_scores(candidate)
    cases = _cases(base) | _cases(candidate)
    return [
        CasePair(key, case.split, case.category, before.get(key), after.get(key))
        for key, case in sorted(cases.items())
    ]


def load_scores(evaluation: Evaluation) -> dict[str, CaseScores]:
    """Return the scores of an evaluation by case key."""
    rows = evaluation.results.values_list("case__key", "accuracy", "effectiveness")
    by_case: dict[str, list[Scores]] = defaultdict(list)
    for key, accuracy, effectiveness in rows:
        by_case[key].append((accuracy, effectiveness))
    return {key: merge_repeats(scores, evaluation.repeats) for key, scores in by_case.items()}


def merge_repeats(scores: Iterable[Scores], repeats: int) -> CaseScores:
    """Average the repeats of a case; without a score for each of them it has none."""
    scored = [
        (accuracy, effect) for accuracy, effect in scores if accuracy is not None and effect is not None
    ]
    if len(scored) < repeats:
        return CaseScores(None, None, errors=repeats - len(scored), repeats=repeats)
    return CaseScores(
        sum(accuracy for accuracy, _ in scored) / repeats,
        sum(effect for _, effect in scored) / repeats,
        passes=sum(accuracy == 1 and effect == 1 for accuracy, effect in scored),
        repeats=repeats,
    )


def _cases(evaluation: Evaluation) -> dict[str, DatasetCase]:
    cases = evaluation.dataset_version.cases.filter(split__in=evaluation.splits)
    # Without the version Django loads it for each case once more.
    return {case.key: case for case in cases.only("key", "split", "category", "version")}


def run_facts(evaluation: Evaluation) -> RunFacts:
    """Return what has to be equal for two evaluations to be comparable."""
    return RunFacts(
        dataset_version=str(evaluation.dataset_version),
        splits=", ".join(evaluation.splits),
        # Of a version that nobody named the model is a part: see RunFacts.
        model=evaluation.model if evaluation.commit else "",
        judge_commit=evaluation.judge_commit,
        judge_model=evaluation.judge_model,
        repeats=evaluation.repeats,
        runner=_describe_runner(evaluation),
        faults=describe_faults(evaluation.faults) or "none",
        user_model=evaluation.user_model,
        live_tools="live" if evaluation.live_tools else "fixtures",
        has_ended=evaluation.state in ENDED,
    )


def _describe_runner(evaluation: Evaluation) -> str:
    """What ran the agent; of answers given elsewhere, which program ran it."""
    answered = evaluation.answers_from or evaluation
    if answered.origin:
        return str(answered.origin.get("format") or "elsewhere")
    return detail_runner(evaluation.runner)


def weigh(base: Evaluation, candidate: Evaluation, policy: Policy) -> VerdictFigures:
    """Return the verdict over two evaluations, from what is stored of them."""
    return decide(load_pairs(base, candidate), run_facts(base), run_facts(candidate), policy)


def store_verdict(base: Evaluation, candidate: Evaluation) -> Verdict:
    """Make the verdict by the harness's policy, in place of an older one over the same two evaluations."""
    policy = Policy.from_dict(candidate.harness.policy)
    figures = weigh(base, candidate, policy)
    verdict, _ = Verdict.objects.update_or_create(
        base=base,
        candidate=candidate,
        defaults={
            "harness": candidate.harness,
            "outcome": figures.outcome,
            "reasons": [reason.to_dict() for reason in figures.reasons],
            "policy": asdict(policy),
            "figures": figures.to_dict(),
        },
    )
    return verdict
