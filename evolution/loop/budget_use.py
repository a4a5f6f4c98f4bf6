"""Inside an evaluation with a budget: what all processes have used, and what their calls under way are to take.

A process writes down what a call is expected to take before it makes it, and strikes it out in the transaction that
stores what it took. So the sum is right at any moment; what a killed process leaves counts as used: it was asked for.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from django.db import connection

from evolution.limits.holders import is_gone
from evolution.loop.call_keys import write_request
from evolution.loop.prices import cost_of
from evolution.loop.usage import MOST, RoleUse, add_usage
from evolution.models import BudgetHold, Evaluation, EvaluationUsage
from harness_repo.runtime.chat import ChatRequest

# English has some 4 characters to a token, and Chinese some 1.7 of 3 bytes each.
BYTES_PER_TOKEN = 4
# Of an answer, where nobody knows.
COMPLETION_TOKENS = 200
# Seconds after which the calls of a process that says no more are not waited for; longer than calls usually take.
LEASE_SECONDS = 120.0
# As money is stored; sums of it come out even.
_SMALLEST = Decimal("0.00000001")


@dataclass(frozen=True)
class Used:
    """What calls have used, or are expected to."""

    # tries, whether answered or not
    calls: int = 0
    tokens: int = 0
    money: Decimal = Decimal(0)
    # calls whose price is unknown
    unpriced: int = 0

    def __add__(self, other: "Used") -> "Used":
        return Used(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.money + other.money,
            self.unpriced + other.unpriced,
        )

    def __sub__(self, other: "Used") -> "Used":
        return Used(
            self.calls - other.calls,
            self.tokens - other.tokens,
            self.money - other.money,
            self.unpriced - other.unpriced,
        )


NOTHING = Used()


@dataclass(frozen=True)
class Account:
    """What the database knows of an evaluation's use at a time."""

    # stored, and lost with processes that are gone
    used: Used = NOTHING
    # by calls under way in other processes, and calls of theirs that are not stored yet
    held: Used = NOTHING
    # role -> what a call of it has taken on average
    means: Mapping[str, Used] = field(default_factory=dict)
    running_seconds: float = 0.0
    # by the clock of this process
    at: float = 0.0


class _Row(NamedTuple):
    """A role's use that is stored, or, with a holder, what a process holds for it."""

    role: str
    holder: str
    made: int
    used: Used
    is_live: bool


# Both in one statement: what is struck out of the one as it comes into the other is seen exactly once. As often as
# calls are made, the ORM's share would show.
_READ = """
SELECT role, '', made, made + failed, prompt_tokens + completion_tokens, cost, unpriced, true
FROM evolution_evaluationusage WHERE evaluation_id = %s
UNION ALL
SELECT role, holder, 0, calls, tokens, money, 0, lease_until > clock_timestamp()
FROM evolution_budgethold WHERE evaluation_id = %s
"""
_LOCK = "SELECT running_seconds FROM evolution_evaluation WHERE id = %s"
_HOLD = """
INSERT INTO evolution_budgethold (evaluation_id, holder, role, calls, tokens, money, lease_until)
SELECT %s, %s, role, calls, tokens, money, clock_timestamp() + make_interval(secs => %s)
FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::numeric[]) AS new (role, calls, tokens, money)
WHERE EXISTS (SELECT 1 FROM evolution_evaluation WHERE id = %s)
ON CONFLICT (evaluation_id, holder, role) DO UPDATE SET calls = EXCLUDED.calls, tokens = EXCLUDED.tokens,
    money = EXCLUDED.money, lease_until = EXCLUDED.lease_until
"""


def read_account(evaluation: int, holder: str, *, locked: bool = False) -> Account:
    """The use of all processes; Evaluation.DoesNotExist when it is gone.

    `locked` holds off others that want the same, until the caller's transaction ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"{_LOCK}{' FOR NO KEY UPDATE' if locked else ''}", [evaluation])
        found = cursor.fetchone()
        if found is None:
            raise Evaluation.DoesNotExist
        cursor.execute(_READ, [evaluation, evaluation])
        rows = [_Row(role, whose, made, Used(*used), live) for role, whose, made, *used, live in cursor]
    stored = [row for row in rows if not row.holder]
    others = [row for row in rows if row.holder not in ("", holder)]
    live = [row for row in others if row.is_live and not is_gone(row.holder)]
    lost = [row for row in others if row not in live]
    if locked:
        _count_lost(evaluation, lost)
    return Account(
        _sum(row.used for row in (*stored, *lost)),
        _sum(row.used for row in live),
        {row.role: _mean(row) for row in stored if row.made},
        found[0],
        time.monotonic(),
    )


def write_holds(evaluation: int, holder: str, holds: Mapping[str, Used]) -> None:
    """Write down what this process's calls are to take, by role, in place of what was written before.

    Nothing for an evaluation that is gone.
    """
    roles = sorted(holds)
    used = [holds[role] for role in roles]
    columns = (
        [one.calls for one in used],
        [one.tokens for one in used],
        [min(one.money, MOST) for one in used],
    )
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [evaluation, holder, LEASE_SECONDS, roles, *columns, evaluation])


def remove_holds(evaluation: int, holder: str) -> None:
    """Forget what this process held."""
    BudgetHold.objects.filter(evaluation=evaluation, holder=holder).delete()


def read_history(evaluation: Evaluation) -> dict[tuple[str, str], Used]:
    """(role, model) -> what a call took in the harness's last evaluation, at the prices of today."""
    usage = EvaluationUsage.objects.filter(evaluation__harness=evaluation.harness_id, made__gt=0)
    newest = usage.exclude(evaluation=evaluation.pk).order_by("role", "model", "-evaluation_id")
    return {(row.role, row.model): _expect(row) for row in newest.distinct("role", "model")}


def guess_use(model: str, request: ChatRequest) -> Used:
    """What a call will take, by the length of its prompt and the longest answer that it allows, if it says one."""
    prompt = len(write_request(request)) // BYTES_PER_TOKEN
    stated = [request.parameters.get(name) for name in ("max_tokens", "max_completion_tokens")]
    limits = [most for most in stated if isinstance(most, int) and most > 0]
    completion = min(limits, default=COMPLETION_TOKENS)
    return Used(1, prompt + completion, _money(cost_of(model, prompt, completion)))


def _expect(row: EvaluationUsage) -> Used:
    prompt, completion, cached = (
        -(-count // row.made) for count in (row.prompt_tokens, row.completion_tokens, row.cached_tokens)
    )
    return Used(1, prompt + completion, _money(cost_of(row.model, prompt, completion, cached)))


def _mean(row: _Row) -> Used:
    # Rounded up: what is expected has to be enough.
    return Used(1, -(-row.used.tokens // row.made), _money(row.used.money / row.made))


def _money(cost: Decimal | None) -> Decimal:
    return (cost or Decimal(0)).quantize(_SMALLEST)


def _sum(parts: Iterable[Used]) -> Used:
    return sum(parts, NOTHING)


# Where the name of a role's model stands on an evaluation.
_MODELS = {"policy": "model", "judge": "judge_model", "user": "user_model"}


def _count_lost(evaluation: int, lost: Iterable[_Row]) -> None:
    """Calls that were under way in processes that are gone have failed; what they may have taken stays held."""
    for row in lost:
        own = BudgetHold.objects.filter(evaluation=evaluation, holder=row.holder, role=row.role)
        if row.used.calls and own.filter(calls=row.used.calls).update(calls=0):
            model = Evaluation.objects.values_list(_MODELS[row.role], flat=True).get(pk=evaluation)
            add_usage(evaluation, {row.role: RoleUse(model, failed=row.used.calls)})
