"""Inside an evaluation: what is used of each role's model, added up in the same transaction as the kept calls."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal

from django.db import connection

from harness_repo.runtime.chat import Usage

MOST_TOKENS = 2**31 - 1
# The most that a sum holds, of money as of anything else.
MOST = 10**10 - 1


@dataclass
class RoleUse:
    """What has been used of a role's model; the fields of EvaluationUsage."""

    model: str
    made: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0

    def count(self, usage: Usage, cost: Decimal | None) -> None:
        """Count a call that was made and answered."""
        self.made += 1
        self.prompt_tokens += count_tokens(usage.prompt_tokens)
        self.completion_tokens += count_tokens(usage.completion_tokens)
        self.cached_tokens += count_tokens(min(usage.cached_tokens, usage.prompt_tokens))
        if cost is None:
            self.unpriced += 1
        else:
            self.cost += cost

    def add(self, other: "RoleUse") -> None:
        """Add what was used besides."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def count_tokens(count: int) -> int:
    """Tokens as a model counted them, as far as they can be stored: what it says is not always sound."""
    return min(max(count, 0), MOST_TOKENS)


_COUNTS = [column.name for column in fields(RoleUse) if column.name != "model"]
_ROW = f"({', '.join(['%s'] * (len(_COUNTS) + 3))})"
_ADD = """
INSERT INTO evolution_evaluationusage AS kept (evaluation_id, role, model, {columns})
VALUES {rows}
ON CONFLICT (evaluation_id, role) DO UPDATE SET model = EXCLUDED.model, {sums}
"""
_SUMS = ", ".join(f"{name} = least(kept.{name} + EXCLUDED.{name}, {MOST})" for name in _COUNTS)


def add_usage(evaluation: int, usage: Mapping[str, RoleUse]) -> None:
    """Add to an evaluation's usage, in the caller's transaction and in the order of the roles, as everybody does."""
    if not usage:
        return
    values: list[int | str | Decimal] = []
    for role, use in sorted(usage.items()):
        values += [evaluation, role, use.model[:200], *(min(getattr(use, name), MOST) for name in _COUNTS)]
    rows = ", ".join([_ROW] * len(usage))
    with connection.cursor() as cursor:
        # Nothing but names and placeholders is put in.
        cursor.execute(_ADD.format(columns=", ".join(_COUNTS), rows=rows, sums=_SUMS), values)
