"""What people do with results that were made elsewhere: take them in as an evaluation."""

from pathlib import Path

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from evolution.actions.harnesses import create_harness, ensure_starter
from evolution.actors import Actor, Role
from evolution.adapters.results.detect import Source, open_source, read_source
from evolution.adapters.results.wanted import Wanted
from evolution.errors import LoopError
from evolution.loop.imported_results import ImportedResults, Origin, store_results
from evolution.loop.repositories import open_repository
from evolution.models import Harness
from evolution.states import HarnessKind

# Before the dataset's name: the harness of results whose harness nobody named.
PREFIX = "imported-"
README = """# Results made elsewhere

This harness has no files of an agent. It holds evaluations that `manage.py import_results` took in without
`--harness`: each is of a version that nobody named, and is compared with the others of the same cases.
"""


def import_results(
    actor: Actor,
    source: Path | Source,
    *,
    harness_name: str = "",
    ref: str = "",
    wanted: Wanted | None = None,
) -> ImportedResults:
    """Take a file of another program's results in as an evaluation of a harness's version.

    Without a ref it is one of an unknown version; without a harness, of one that is made for the dataset. Raises
    LoopError for names that are not there, BrokenInput for a file that can't be read, HarnessRepoError for a ref.
    """
    actor.require(Role.DEVELOPER)
    if ref and not harness_name:
        raise LoopError(_("a ref is a version of a harness: name the harness too"))
    # What is named is looked for before a large file is read.
    named = ensure_starter(actor, harness_name) if harness_name else None
    commit = open_repository(named).resolve(ref) if named and ref else ""
    source = open_source(source) if isinstance(source, Path) else source
    wanted = wanted or Wanted()
    run = read_source(source, wanted)
    options = {"score": wanted.score, "threshold": wanted.threshold, "full_marks": wanted.full_marks}
    with transaction.atomic():
        harness = named or _ensure_home(actor, run.dataset)
        return store_results(actor, harness, commit, run, Origin(source.name, source.digest, options))


def _ensure_home(actor: Actor, dataset: str) -> Harness:
    """The harness for results on a dataset: failures of different agents' tasks don't belong into one inbox."""
    name = f"{PREFIX}{dataset}"[:64]
    known = Harness.objects.filter(name=name).first()
    if known is not None:
        return known
    title = _("Results made elsewhere: %(dataset)s") % {"dataset": dataset}
    files = {"README.md": README.encode()}
    try:
        return create_harness(actor, name, HarnessKind.AGENT, files, title=title, as_it_is=True)
    except IntegrityError:
        # Another import made it at the same moment.
        return Harness.objects.get(name=name)
