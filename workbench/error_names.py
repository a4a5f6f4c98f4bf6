"""What failed where a result has no score, in the reader's language; the kinds are those of evolution.loop.outcomes."""

from django.utils.translation import gettext as _


def name_error(kind: str) -> str:
    """What an error kind is called; one that came with results made elsewhere stays as it is."""
    names = {
        "policy_error": _("the agent's model failed"),
        "timeout": _("the agent timed out"),
        "runner_error": _("the agent broke"),
        "user_error": _("the simulated user failed"),
        "judge_error": _("the judge failed"),
        "judge_timeout": _("the judge timed out"),
        "judge_output": _("the judge's answer is of no use"),
        "budget": _("stopped by the budget"),
        "worker_lost": _("a worker died of it"),
        "not_started": _("could not be started"),
        "not_stored": _("could not be stored"),
        "case_error": _("the case can't be run"),
    }
    return names.get(kind, kind)


def name_budget(part: str) -> str:
    """What a part of a budget is called."""
    names = {"calls": _("calls"), "tokens": _("tokens"), "money": _("money"), "seconds": _("seconds")}
    return names.get(part, part)


def name_model_role(role: str) -> str:
    """Which part a model plays in an evaluation."""
    names = {"policy": _("agent"), "judge": _("judge"), "user": _("simulated user")}
    return names.get(role, role)
