"""What a reader is told beside the file, and the refusal that leaves what to choose from to people."""

import re
from dataclasses import dataclass, field

from django.utils.text import slugify
from django.utils.translation import gettext as _

from evolution.errors import BrokenInput

_TIMEOUT = re.compile(r"time(d[ -])?[ -]?out", re.IGNORECASE)


@dataclass(frozen=True)
class Wanted:
    """How a file is to be read; the file's own word counts where a field is empty."""

    # the file's name, for messages and where the source names no dataset
    name: str = ""
    dataset: str = ""
    # which of several runs in one file
    variant: str = ""
    # which of several scores of a result decides
    score: str = ""
    # a score from here on is a pass, on a scale that ends at full_marks
    threshold: float = 1.0
    full_marks: float = 1.0

    def name_dataset(self, said: object) -> str:
        """The dataset's name: as asked for, as the source says, or after the file."""
        names = (self.dataset, said if isinstance(said, str) else "", self.name.rsplit(".", 1)[0])
        return next((slug for name in names if (slug := slugify(name)[:64].strip("-"))), "imported")


@dataclass
class Items:
    """Records of a file, and what was wrong with those that are left out."""

    problems: list[str] = field(default_factory=list)

    def reject(self, where: str, problem: object) -> None:
        """Note that a record can't be used."""
        self.problems.append(f"{where}: {problem}")


def choose(known: list[str], wanted: str, option: str) -> str:
    """The one that was asked for, or the only one. BrokenInput names what there is."""
    if wanted in known:
        return wanted
    if not wanted and len(known) == 1:
        return known[0]
    what = {
        "option": option,
        "known": "".join(f"\n  {name}" for name in known),
        "count": len(known),
        "wanted": wanted,
    }
    if wanted:
        raise BrokenInput(_("there is no %(wanted)s in the file; give %(option)s one of:%(known)s") % what)
    raise BrokenInput(_("the file has %(count)d; choose one with %(option)s:%(known)s") % what)


def kind_of(failure: str) -> str:
    """The kind of error of an agent that did not answer, from what its program wrote of it."""
    return "timeout" if _TIMEOUT.search(failure) else "policy_error"
