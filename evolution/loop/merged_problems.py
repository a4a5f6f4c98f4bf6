"""Inside the steps: problems that a merge has and none of its sides, as two files that lay claim to one name."""

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _

from evolution.loop.edits import EditRefused
from harness_repo.format.harness import read_harness
from harness_repo.format.problems import Problem

MOST_SHOWN = 5


def check_merged(sides: Sequence[Mapping[str, bytes]], merged: Mapping[str, bytes], path: str = "") -> None:
    """Raise EditRefused when the merged files (with `path`: that one) have a problem that no side has."""
    known = {_name(problem) for side in sides for problem in read_harness(side).problems}
    found = [problem for problem in read_harness(merged).problems if path in {"", problem.path}]
    added = [problem for problem in found if _name(problem) not in known]
    if added:
        lines = [f"{problem.path}:{problem.line}: {problem.message}" for problem in added[:MOST_SHOWN]]
        raise EditRefused(
            _("put together, it would have problems: %(problems)s") % {"problems": "; ".join(lines)}
        )


def _name(problem: Problem) -> tuple[str, str, str]:
    # Lines move with every edit, so they do not tell one problem from another.
    return problem.path, problem.code, problem.message
