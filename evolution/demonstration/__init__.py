"""The demonstration dataset: a digital avatar's cases in ten live shopping rooms, written for this project.

Feeds the first stage of the loop. Plain data and plain Python: no Django, no model.
"""

from pathlib import Path

from evolution.demonstration.casefile import CaseData, read_cases
from evolution.demonstration.rooms import DatasetError

__all__ = ["CaseData", "DatasetError", "load_cases"]


def load_cases() -> list[CaseData]:
    """All cases, fixtures expanded, in a fixed order; DatasetError names the file and key of a wrong one."""
    return read_cases(Path(__file__).parent)
