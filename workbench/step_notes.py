"""What hangs beside the lines of a step's diff: flags of what it changes altogether, and where people settled it."""

from collections.abc import Sequence

from evolution.loop.proposal_flags import flag_step
from evolution.models import ConflictResolution, Step
from harness_repo.git.conflicts import FileConflict
from harness_repo.git.errors import HarnessRepoError
from workbench.diff_view import line_key
from workbench.flag_names import name_flag
from workbench.review_flags import FlagAtLine
from workbench.review_notes import Notes


def list_step_notes(
    step: Step, settled: Sequence[tuple[FileConflict, ConflictResolution]] = ()
) -> dict[str, Notes]:
    """The notes in their places; no flags when git has the versions no longer."""
    places: dict[str, Notes] = {}
    for file, resolution in settled:
        places.setdefault(line_key(file.path, "new", 0), Notes()).settled.append(resolution)
    for flag in _list_flags(step):
        key = line_key(flag.flag.path, flag.flag.side, flag.flag.line)
        places.setdefault(key, Notes()).flags.append(flag)
    return places


def _list_flags(step: Step) -> list[FlagAtLine]:
    try:
        return [FlagAtLine(flag, name_flag(flag)) for flag in flag_step(step)]
    except HarnessRepoError:
        return []
