"""How much of its budget an evaluation has used."""

from dataclasses import dataclass

from evolution.models import Evaluation
from evolution.queries.usage import Spend


@dataclass(frozen=True)
class BudgetUse:
    """A part of a budget, and how much of it is used; in the part's unit."""

    # calls, tokens, money or seconds
    part: str
    used: float
    limit: float

    @property
    def percent(self) -> int:
        """Rounded down; above 100 where calls under way went beyond the limit."""
        return int(100 * self.used / self.limit)


def list_budget(evaluation: Evaluation, spent: Spend) -> list[BudgetUse]:
    """The parts of the evaluation's budget that have a limit; a try that failed is a call, too."""
    used: dict[str, float] = {
        "calls": spent.made + spent.failed,
        "tokens": spent.tokens,
        "money": float(spent.known_cost),
        "seconds": evaluation.running_seconds,
    }
    limits = evaluation.budget.items()
    return [BudgetUse(part, used[part], limit) for part, limit in limits if part in used and limit]
