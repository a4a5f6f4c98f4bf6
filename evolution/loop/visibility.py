"""What models may see of the failures: guard, sealed and calibration cases stay hidden from diagnoser and editor."""

from evolution.models import FailureCase
from evolution.states import Split


def is_visible_to_models(case: FailureCase) -> bool:
    """Say whether diagnoser and editor may see it: no guard, sealed or calibration case."""
    return case.dataset_case is None or case.dataset_case.split == Split.DEV
