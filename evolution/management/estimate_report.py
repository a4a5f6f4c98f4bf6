"""What `evaluate --estimate` prints."""

from decimal import Decimal
from typing import Any

from evolution.loop.estimates import Estimate, RoleEstimate


def summarise_estimate(estimate: Estimate, base: Estimate | None = None) -> dict[str, Any]:
    """The object of `evaluate --estimate --json`: all roles together, each of them, and the same of the base."""
    roles = [{"role": row.role, "model": row.model, **_figures(row)} for row in estimate.roles]
    found = {"pairs": estimate.pairs, "sampled": estimate.sampled, **_figures(estimate.total), "roles": roles}
    return found if base is None else found | {"base": summarise_estimate(base)}


def _figures(row: RoleEstimate) -> dict[str, Any]:
    return {
        "calls": row.calls,
        "cached": row.cached,
        "to_make": row.to_make,
        "tokens": {"prompt": row.prompt_tokens, "completion": row.completion_tokens},
        "cost": None if row.cost is None else float(row.cost),
        "basis": row.basis,
    }


def format_estimate(estimate: Estimate, base: Estimate | None = None, *, currency: str) -> str:
    """The same for people, a line per role."""
    rows = [*estimate.roles, estimate.total]
    lines = [f"{row.role or 'in all'}: {_describe(row, currency)}" for row in rows]
    if 0 < estimate.sampled < estimate.pairs:
        lines.append(f"kept calls were looked up for {estimate.sampled} of {estimate.pairs} results")
    if base is not None:
        lines += [f"base, {line}" for line in format_estimate(base, currency=currency).splitlines()]
    return "\n".join(lines)


def _describe(row: RoleEstimate, currency: str) -> str:
    model = f" of {row.model}" if row.model else ""
    basis = "" if row.basis == "history" else ", at least: by the size of the prompts"
    return (
        f"{row.to_make} of {row.calls} calls{model} to make, {row.prompt_tokens} + {row.completion_tokens} tokens, "
        f"{describe_cost(row.cost, currency)}{basis}"
    )


def describe_cost(cost: Decimal | float | None, currency: str) -> str:
    """An amount, or that nobody knows it."""
    return "price unknown" if cost is None else f"{cost:.4f} {currency}"
