"""What evaluations have used of their models, by role and in all: for pages and commands."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from evolution.models import Evaluation, EvaluationUsage


@dataclass(frozen=True)
class Spend:
    """Calls, tokens and money of a role's model; of all roles where `role` is empty."""

    role: str = ""
    model: str = ""
    # calls that were made and answered, that were answered from kept ones, and tries that failed
    made: int = 0
    cached: int = 0
    failed: int = 0
    # of the calls made; cached_tokens are the prompt tokens that the provider read from its own cache
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    # in the evaluation's currency, of those of the calls made whose price is known; and how many have none
    known_cost: Decimal = Decimal(0)
    unpriced: int = 0

    @property
    def asked(self) -> int:
        """Calls that were answered, one way or the other."""
        return self.made + self.cached

    @property
    def tokens(self) -> int:
        """All tokens of the calls made."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def cost(self) -> Decimal | None:
        """What the calls made cost, None when the price of any is unknown."""
        return None if self.unpriced else self.known_cost

    def __add__(self, other: "Spend") -> "Spend":
        """Both together, of no role."""
        return Spend(
            made=self.made + other.made,
            cached=self.cached + other.cached,
            failed=self.failed + other.failed,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            known_cost=self.known_cost + other.known_cost,
            unpriced=self.unpriced + other.unpriced,
        )


@dataclass(frozen=True)
class Usage:
    """What one evaluation has used so far."""

    # those that were asked at all, in the order of a case: agent, user, judge
    roles: tuple[Spend, ...] = ()

    @property
    def total(self) -> Spend:
        """All roles together."""
        return sum(self.roles, start=Spend())


_ORDER = ("policy", "user", "judge")


def usage_of(evaluation: Evaluation) -> Usage:
    """What an evaluation has used so far; one question to the database."""
    return usage_by_evaluation([evaluation.pk])[evaluation.pk]


def usage_by_evaluation(ids: Iterable[int]) -> dict[int, Usage]:
    """The same for many, one question for all; without an entry of its own an evaluation has used nothing."""
    rows: dict[int, list[Spend]] = defaultdict(list)
    for row in EvaluationUsage.objects.filter(evaluation__in=list(ids)):
        rows[row.evaluation_id].append(_read(row))
    found = {key: Usage(tuple(sorted(spends, key=_place))) for key, spends in rows.items()}
    return defaultdict(Usage, found)


def _place(spend: Spend) -> tuple[int, str]:
    return (_ORDER.index(spend.role) if spend.role in _ORDER else len(_ORDER), spend.role)


def _read(row: EvaluationUsage) -> Spend:
    return Spend(
        row.role,
        row.model,
        row.made,
        row.cached,
        row.failed,
        row.prompt_tokens,
        row.completion_tokens,
        row.cached_tokens,
        row.cost,
        row.unpriced,
    )
