"""How much a version from elsewhere may change: people and checks look at all of it. Found without reading a file."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import HarnessRepository
from harness_repo.runtime.storable import make_storable

MOST_FILES = 500
# Bytes of one file, and of all together; what an edit may do is much less.
LARGEST_FILE = 1_000_000
MOST_BYTES = 5_000_000


def find_size_fault(repository: HarnessRepository, base: str, head: str) -> str:
    """Why what the version changes against `base` is too much to be judged, or can't be read; empty when it is not."""
    try:
        changes = repository.list_changes(base, head)
    except HarnessRepoError as failure:
        return str(failure)
    if len(changes) > MOST_FILES:
        text = ngettext(
            "it changes %(n)s file, more than the %(most)s that can be judged",
            "it changes %(n)s files, more than the %(most)s that can be judged",
            len(changes),
        )
        return text % {"n": f"{len(changes):,}", "most": MOST_FILES}
    largest = max(changes, key=lambda change: change.size, default=None)
    if largest is not None and largest.size > LARGEST_FILE:
        text = _("%(path)s has %(n)s bytes, more than the %(most)s that can be judged")
        path = make_storable(largest.path)
        return text % {"path": path, "n": f"{largest.size:,}", "most": f"{LARGEST_FILE:,}"}
    total = sum(change.size for change in changes)
    if total > MOST_BYTES:
        text = _(
            "the files that it changes have %(n)s bytes together, more than the %(most)s that can be judged"
        )
        return text % {"n": f"{total:,}", "most": f"{MOST_BYTES:,}"}
    return ""
