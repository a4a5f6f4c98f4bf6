"""What `evaluate` and its like print of an evaluation: one object, or a sentence."""

from typing import Any

from django.conf import settings
from django.db.models import Count

from evolution.loop.evaluation import average_scores
from evolution.management.estimate_report import describe_cost
from evolution.models import Evaluation
from evolution.queries.results import count_statuses
from evolution.queries.usage import usage_of
from evolution.states import EvaluationState


def summarise(evaluation: Evaluation, *, is_reused: bool = False) -> dict[str, Any]:
    """The object that `evaluate --json` prints; scores on the 0-100 scale, guard cases left out of them.

    Calls, tokens and cost are what this evaluation spent: those answered from kept calls are counted as `cached`.
    """
    averages = average_scores(evaluation)
    spent = usage_of(evaluation).total
    return {
        "evaluation": evaluation.pk,
        "status": evaluation.state,
        "reused": is_reused,
        "cases": evaluation.total // max(evaluation.repeats, 1),
        "results": averages.results,
        "errors": averages.errors,
        "errors_by_kind": count_errors(evaluation),
        "by_status": count_statuses(evaluation),
        "accuracy": _rounded(averages.accuracy),
        "effectiveness": _rounded(averages.effectiveness),
        "calls": spent.made,
        "cached": spent.cached,
        "wall_seconds": measure_wall(evaluation),
        "tokens": {
            "prompt": spent.prompt_tokens,
            "completion": spent.completion_tokens,
            "cached": spent.cached_tokens,
        },
        "cost": None if spent.cost is None else float(spent.cost),
        "currency": evaluation.currency or settings.MODEL_CURRENCY,
        "stopped_by": evaluation.stopped_by,
    }


def measure_wall(evaluation: Evaluation) -> float | None:
    """Seconds from its start to its end, pauses included; None before both."""
    if evaluation.started_at is None or evaluation.finished_at is None:
        return None
    return round((evaluation.finished_at - evaluation.started_at).total_seconds(), 3)


def count_errors(evaluation: Evaluation) -> dict[str, int]:
    """Error kind -> results: whose failures they are, since an agent may bring them about on purpose."""
    kinds = evaluation.results.exclude(error_kind="").order_by("error_kind")
    return dict(kinds.values_list("error_kind").annotate(count=Count("pk")))


def format_summary(summary: dict[str, Any]) -> str:
    """The same for people."""
    scores = [
        f"{name} {summary[name]}" for name in ("accuracy", "effectiveness") if summary[name] is not None
    ]
    kinds = ", ".join(f"{kind}: {count}" for kind, count in summary["errors_by_kind"].items())
    counts = format_counts(summary)
    counts += f" ({kinds})" if kinds else ""
    statuses = ", ".join(f"{status}: {count}" for status, count in summary["by_status"].items())
    counts += f"; runs: {statuses}" if statuses else ""
    reused = " (reused)" if summary["reused"] else ""
    stopped = f", stopped by its budget of {summary['stopped_by']}" if summary["stopped_by"] else ""
    state = EvaluationState(summary["status"]).label
    name = f"evaluation {summary['evaluation']}{reused} is {state}{stopped}"
    return f"{name}: {counts}; {', '.join(scores) or 'no score'}; {format_spending(summary)}"


def format_counts(summary: dict[str, Any]) -> str:
    """Such as "80 results over 40 cases, 1 error"."""
    results, cases, errors = (_count(summary[f"{word}s"], word) for word in ("result", "case", "error"))
    return f"{results} over {cases}, {errors}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def format_spending(summary: dict[str, Any]) -> str:
    """Calls, tokens, money and time of a summary."""
    tokens = summary["tokens"]
    wall = "" if summary["wall_seconds"] is None else f", in {summary['wall_seconds']} s"
    return (
        f"{summary['calls']} of {summary['calls'] + summary['cached']} calls made, "
        f"{tokens['prompt']} + {tokens['completion']} tokens, "
        f"{describe_cost(summary['cost'], summary['currency'])}{wall}"
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
