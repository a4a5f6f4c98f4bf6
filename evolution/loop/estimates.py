"""Before an evaluation: how many calls, tokens and how much money it will take, by role.

Calls and tokens of a case are those of the harness's last evaluation, where there is one; what kept answers will save
is counted by running a sample of the cases on them.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db.models import Avg, QuerySet

from evolution.loop.budget_use import BYTES_PER_TOKEN, COMPLETION_TOKENS
from evolution.loop.dry_run import DryPair, run_dry
from evolution.loop.evaluation import build_scorer
from evolution.loop.prices import cost_of
from evolution.models import CaseResult, DatasetCase, Evaluation, EvaluationUsage
from evolution.ports import NamedModel

# Pairs that are run on kept answers, and pairs whose prompts are measured where there is no history.
MOST_SAMPLED = 200
MOST_MEASURED = 10

Basis = Literal["history", "prompt size"]


@dataclass(frozen=True)
class RoleEstimate:
    """What a role's model will be asked, kept answers included; tokens and cost are of the calls to be made."""

    role: str
    model: str
    calls: int
    # of `calls`, those whose answers are kept
    cached: int
    prompt_tokens: int
    completion_tokens: int
    # in MODEL_CURRENCY; None when the price is unknown
    cost: Decimal | None
    # where calls and tokens of a case come from; "prompt size" is one call per case, and at least that
    basis: Basis

    @property
    def to_make(self) -> int:
        """Calls that nobody has the answer to."""
        return self.calls - self.cached

    @property
    def tokens(self) -> int:
        """All tokens of the calls to be made."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Estimate:
    """What an evaluation will take; `sampled` of its `pairs` were looked up among the kept answers, 0 for none."""

    roles: tuple[RoleEstimate, ...]
    pairs: int
    sampled: int

    @property
    def total(self) -> RoleEstimate:
        """All roles together, with the weakest basis of any."""
        costs = [role.cost for role in self.roles]
        is_known = all(role.basis == "history" for role in self.roles)
        return RoleEstimate(
            "",
            "",
            sum(role.calls for role in self.roles),
            sum(role.cached for role in self.roles),
            sum(role.prompt_tokens for role in self.roles),
            sum(role.completion_tokens for role in self.roles),
            None if None in costs else sum((cost or Decimal(0) for cost in costs), Decimal(0)),
            "history" if is_known else "prompt size",
        )


@dataclass(frozen=True)
class Rate:
    """What a role's model is asked: calls of a (case, repeat), and tokens of a call."""

    calls: float
    prompt_tokens: float
    completion_tokens: float
    cached_tokens: float = 0.0
    basis: Basis = "history"


def estimate(evaluation: Evaluation, models: Mapping[str, NamedModel]) -> Estimate:
    """What an evaluation, which need not be stored, will take of the models that serve its roles.

    Takes a second or two. Raises LoopError, and what reading the version raises, where it could not be run either.
    """
    rates = {role: _read_rate(evaluation, role, named.name) for role, named in models.items()}
    dry: list[DryPair] = []
    measured: list[DryPair] = []
    # What an agent that is not ours asks is its own, and its answers are known only to itself.
    if not evaluation.runner:
        scorer = build_scorer(evaluation, models.get("policy"), models["judge"], models.get("user"))
        if settings.EVALUATION_CACHE and not evaluation.is_fresh:
            dry = async_to_sync(run_dry)(evaluation, scorer, _sample(evaluation, MOST_SAMPLED))
        if not all(rates.values()):
            sample = _sample(evaluation, MOST_MEASURED)
            measured = async_to_sync(run_dry)(_without_kept(evaluation), scorer, sample, stand_in="?")
    roles = [
        _estimate_role(
            role,
            named.name,
            rates[role] or _guess_rate(role, measured),
            [pair for pair in dry if pair.asks(role)],
            _count_pairs(evaluation, role),
        )
        for role, named in models.items()
    ]
    return Estimate(tuple(roles), _count_pairs(evaluation), len(dry))


def _without_kept(evaluation: Evaluation) -> Evaluation:
    """The same evaluation with no answers to be found for it."""
    other = copy.copy(evaluation)
    other.pk, other.is_fresh = None, True
    return other


def _cases(evaluation: Evaluation) -> QuerySet[DatasetCase]:
    return evaluation.dataset_version.cases.filter(split__in=evaluation.splits).order_by("key")


def _count_pairs(evaluation: Evaluation, role: str = "") -> int:
    """All pairs, or those that ask a role."""
    cases = _cases(evaluation)
    asking = cases.filter(request__has_key="user") if role == "user" else cases
    return asking.count() * evaluation.repeats


def _sample(evaluation: Evaluation, most: int) -> list[tuple[DatasetCase, int]]:
    """Pairs at even distances over cases and repeats."""
    ids = list(_cases(evaluation).values_list("pk", flat=True))
    total = len(ids) * evaluation.repeats
    step = max(total / most, 1.0)
    numbers = [int(step * place) for place in range(min(total, most))]
    chosen = [(ids[number % len(ids)], number // len(ids)) for number in numbers]
    cases = DatasetCase.objects.in_bulk({case for case, _ in chosen})
    return [(cases[case], repeat) for case, repeat in chosen]


# The columns of a result that hold a role's calls and tokens.
_COLUMNS = {
    "policy": ("call_ms", "prompt_tokens", "completion_tokens", "cached_tokens", "model"),
    "judge": (
        "judge_call_ms",
        "judge_prompt_tokens",
        "judge_completion_tokens",
        "judge_cached_tokens",
        "judge_model",
    ),
}


def _read_rate(evaluation: Evaluation, role: str, model: str) -> Rate | None:
    """What the role took in the harness's last evaluation, the last one with this model first; None without any."""
    if role not in _COLUMNS:
        return _read_user_rate(evaluation, role)
    calls, *_, name = _COLUMNS[role]
    results = CaseResult.objects.filter(
        evaluation__harness=evaluation.harness,
        evaluation__answers_from=None,
        evaluation__origin={},
        error_kind="",
        **{f"{calls}__len__gt": 0},
    )
    newest = results.order_by("-evaluation_id").values_list("evaluation_id", flat=True)
    last = newest.filter(**{f"evaluation__{name}": model}).first() or newest.first()
    return None if last is None else _average(results.filter(evaluation=last), role)


def _average(results: QuerySet[CaseResult], role: str) -> Rate:
    calls, prompt, completion, cached, _ = _COLUMNS[role]
    row = results.aggregate(
        calls=Avg(f"{calls}__len"), prompt=Avg(prompt), completion=Avg(completion), cached=Avg(cached)
    )
    made = row["calls"]
    return Rate(made, row["prompt"] / made, row["completion"] / made, row["cached"] / made)


def _read_user_rate(evaluation: Evaluation, role: str) -> Rate | None:
    """The same for the user of conversations, whose calls stand on no result."""
    used = EvaluationUsage.objects.filter(evaluation__harness=evaluation.harness, role=role, made__gt=0)
    last = used.order_by("-evaluation_id").first()
    if last is None:
        return None
    talks = CaseResult.objects.filter(
        evaluation=last.evaluation_id, error_kind="", case__request__has_key="user"
    )
    made = last.made
    return Rate(
        (made + last.cached) / max(talks.count(), 1),
        last.prompt_tokens / made,
        last.completion_tokens / made,
        last.cached_tokens / made,
    )


def _guess_rate(role: str, measured: Sequence[DryPair]) -> Rate:
    """One call for each pair that asks this role, as long as its first prompt."""
    sizes = [pair.missed[role] for pair in measured if role in pair.missed]
    tokens = sum(sizes) / len(sizes) / BYTES_PER_TOKEN if sizes else 0.0
    return Rate(1.0, tokens, COMPLETION_TOKENS, basis="prompt size")


def _estimate_role(role: str, model: str, rate: Rate, dry: Sequence[DryPair], pairs: int) -> RoleEstimate:
    made, kept = rate.calls * pairs, 0.0
    if dry:
        made = sum(_still_to_make(pair, role, rate) for pair in dry) * pairs / len(dry)
        kept = sum(pair.kept.get(role, 0) for pair in dry) * pairs / len(dry)
    to_make, cached = math.ceil(made - 1e-9), round(kept)
    prompt, completion, read = (
        round(to_make * tokens) for tokens in (rate.prompt_tokens, rate.completion_tokens, rate.cached_tokens)
    )
    cost = cost_of(model, prompt, completion, read) if to_make else Decimal(0)
    return RoleEstimate(role, model, to_make + cached, cached, prompt, completion, cost, rate.basis)


def _still_to_make(pair: DryPair, role: str, rate: Rate) -> float:
    """Calls of a pair that will be made: none of a pair that ran to its end, else what is missing of the usual."""
    if not pair.missed:
        return 0.0
    least = 1.0 if role in pair.missed else 0.0
    return max(rate.calls - pair.kept.get(role, 0), least)
