"""Inside an evaluation: what it measures, bound to commits and models and checked, and how much it may take.

Makes no record, and asks no model.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Required, TypedDict

from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.loop.budgets import check_budget
from evolution.loop.repositories import check_has_agent, open_repository, read_version
from evolution.loop.runners import describe_runner, reaches_the_world
from evolution.models import DatasetVersion, Harness
from evolution.states import Split
from harness_repo.git.repository import MAIN
from harness_repo.runtime.faults import Fault, unknown_fault_tools

MOST_CONCURRENCY = 10_000
MOST_REPEATS = 100
DEFAULT_SPLITS = (Split.DEV, Split.GUARD)


class Options(TypedDict, total=False):
    """What may be chosen for an evaluation."""

    splits: Iterable[str]
    repeats: int
    # strike tool calls in every case
    faults: Iterable[Fault]
    # cases under way at once, over all workers
    concurrency: int | None
    # {"calls", "tokens", "money", "seconds"}, each optional
    budget: Mapping[str, Any] | None


class Asked(Options, total=False):
    """The same with the models that are asked."""

    model: Required[str]
    judge_model: Required[str]
    # plays the user of conversation cases, and is needed if there are any
    user_model: str


@dataclass(frozen=True)
class Plan:
    """An evaluation that could be made: values of its fields."""

    # evaluations that agree in these measure the same
    measured: dict[str, Any]
    # how many cases at once, and the budget
    means: dict[str, Any]


def plan_evaluation(
    harness: Harness,
    runner: Mapping[str, Any],
    commit: str,
    version: DatasetVersion,
    *,
    model: str,
    judge_model: str,
    user_model: str = "",
    splits: Iterable[str] = DEFAULT_SPLITS,
    repeats: int = 1,
    faults: Iterable[Fault] = (),
    concurrency: int | None = None,
    budget: Mapping[str, Any] | None = None,
) -> Plan:
    """Bind it to what the names stand for now; LoopError for what can't be measured, or not so."""
    _check_repeats(repeats)
    commits = resolve_commits(harness, commit)
    faults, splits = tuple(faults), sorted(set(splits))
    user = _choose_user(version, splits, user_model)
    _check_agent(harness, commits["commit"], runner, faults)
    asked = [*([] if runner else [model]), judge_model, user]
    means = {"concurrency": _check_concurrency(concurrency), "budget": check_budget(budget, asked)}
    models = {"model": describe_runner(runner)[:200] or model, "judge_model": judge_model, "user_model": user}
    how = {"runner": runner, "live_tools": reaches_the_world(runner), "repeats": repeats}
    struck = [fault.to_dict() for fault in faults]
    return Plan(
        {**commits, "dataset_version": version, "splits": splits, **models, **how, "faults": struck}, means
    )


def resolve_commits(harness: Harness, commit: str) -> dict[str, str]:
    """The full ids of a version and of the judge that is live; LoopError without a judge."""
    if harness.judge is None:
        raise LoopError(_("%(harness)s has no judge; give it one first") % {"harness": harness})
    return {
        "commit": open_repository(harness).resolve(commit),
        "judge_commit": open_repository(harness.judge).resolve(MAIN),
    }


def _check_repeats(repeats: int) -> None:
    if not 1 <= repeats <= MOST_REPEATS:
        text = _("repeats must be a number from 1 to %(most)d, and are %(given)d")
        raise LoopError(text % {"most": MOST_REPEATS, "given": repeats})


def _check_concurrency(concurrency: int | None) -> int | None:
    if concurrency is not None and not 1 <= concurrency <= MOST_CONCURRENCY:
        text = _("cases at once must be a number from 1 to %(most)d, and are %(given)d")
        raise LoopError(text % {"most": MOST_CONCURRENCY, "given": concurrency})
    return concurrency


def _check_agent(harness: Harness, commit: str, runner: Mapping[str, Any], faults: Iterable[Fault]) -> None:
    """Raise LoopError when nothing could be measured, or not what was asked for."""
    check_has_agent(harness, commit, runner)
    if runner:
        # Its tools are its own.
        return
    unknown = unknown_fault_tools(faults, read_version(harness, commit).tools)
    if unknown:
        values = {"harness": harness, "tools": ", ".join(unknown)}
        raise LoopError(_("%(harness)s has no such tool that a fault could strike: %(tools)s") % values)


def has_conversations(version: DatasetVersion, splits: Iterable[str] = DEFAULT_SPLITS) -> bool:
    """Whether a case of these splits is a conversation, which needs a model that plays the user."""
    return version.cases.filter(split__in=list(splits), request__has_key="user").exists()


def _choose_user(version: DatasetVersion, splits: Iterable[str], user_model: str) -> str:
    if not has_conversations(version, splits):
        return ""
    if not user_model:
        raise LoopError(
            _("%(version)s has conversations, and no model plays the user") % {"version": version}
        )
    return user_model
