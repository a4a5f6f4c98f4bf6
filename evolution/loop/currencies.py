"""Inside an evaluation: what its amounts of money are in. Nothing is changed into another currency, or added across."""

from django.conf import settings
from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.loop.budgets import MONEY
from evolution.models import Evaluation


def currency_to_go_on_in(evaluation: Evaluation) -> str:
    """The currency that a resumed evaluation goes on in; LoopError when it has amounts in another one."""
    if evaluation.currency != settings.MODEL_CURRENCY and _has_amounts(evaluation):
        text = _(
            "the amounts of %(evaluation)s are in %(then)s, and prices are in %(now)s now: they can't be added up; "
            "start a new one"
        )
        names = {"then": evaluation.currency or "?", "now": settings.MODEL_CURRENCY}
        raise LoopError(text % {"evaluation": evaluation, **names})
    return settings.MODEL_CURRENCY


def _has_amounts(evaluation: Evaluation) -> bool:
    """Whether anything of it was paid, or may be spent."""
    return (
        MONEY in evaluation.budget
        or evaluation.usage.filter(cost__gt=0).exists()
        or evaluation.results.filter(cost__gt=0).exists()
    )
