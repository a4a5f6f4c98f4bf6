"""Takes results that other programs made in as an evaluation."""

import json
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from evolution.actions.imported_results import import_results
from evolution.actors import SYSTEM
from evolution.adapters.results import plain
from evolution.adapters.results.wanted import Wanted
from evolution.errors import LoopError
from evolution.loop.evaluation import average_scores
from evolution.loop.imported_results import ImportedResults
from evolution.management.evaluation_report import format_counts
from evolution.management.infrastructure import tell_what_is_away
from harness_repo.git.errors import HarnessRepoError

# Exit code when what is named is not there, or the file can't be read.
USAGE = 2
# When something was left out.
LEFT_OUT = 4
MOST_SHOWN = 20


class Command(BaseCommand):
    """Exit code 0: the results are there, whatever they say; 2: nothing was taken in; 4: not everything was."""

    help = (
        "Take results that were made elsewhere in as an evaluation: runs of tau2-bench and tau-bench, logs of\n"
        "Inspect, results of promptfoo, and the format below. What a file is, its content says. Without --harness\n"
        "and --ref it is an evaluation of an unknown version, to be compared with others of the same cases. The\n"
        "same file again is the evaluation that is there. Exit code 0: all was taken in; 2: nothing was; 4: some of\n"
        f"it was left out, or the database is away.\n\n{plain.__doc__}"
    )

    def create_parser(self, *args: Any, **kwargs: Any) -> Any:
        """Keep the layout of the format's description."""
        return super().create_parser(*args, **kwargs, formatter_class=RawDescriptionHelpFormatter)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("path", type=Path, metavar="PATH")
        parser.add_argument("--harness", default="", help="default: one that is made for the dataset")
        parser.add_argument("--ref", default="", help="the version that was measured; default: unknown")
        parser.add_argument("--dataset", default="", help="name of the cases; default: the source's")
        parser.add_argument("--variant", default="", help="which run, where a file has several (promptfoo)")
        parser.add_argument("--score", default="", help="which score, where results have several (Inspect)")
        parser.add_argument("--threshold", type=float, default=1.0, help="pass from here on, 0-1; default: 1")
        parser.add_argument("--full-marks", type=float, default=1.0, help="the highest score; default: 1")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import, and say what is there now."""
        try:
            with tell_what_is_away():
                imported = import_results(
                    SYSTEM,
                    options["path"],
                    harness_name=options["harness"],
                    ref=options["ref"],
                    wanted=_read_options(options),
                )
        except (LoopError, HarnessRepoError) as error:
            raise CommandError(str(error), returncode=USAGE) from None
        for problem in imported.problems[:MOST_SHOWN]:
            self.stderr.write(_("left out: %(problem)s") % {"problem": problem})
        if (more := len(imported.problems) - MOST_SHOWN) > 0:
            self.stderr.write(_("and %(count)s more") % {"count": more})
        summary = summarise(imported)
        self.stdout.write(json.dumps(summary) if options["as_json"] else _format(imported, summary))
        if imported.problems:
            sys.exit(LEFT_OUT)


def _read_options(options: dict[str, Any]) -> Wanted:
    if not (0 < options["threshold"] <= 1 and 0 < options["full_marks"] < float("inf")):
        raise CommandError(_("--threshold is above 0 and at most 1, --full-marks above 0"), returncode=USAGE)
    names = ("dataset", "variant", "score", "threshold", "full_marks")
    return Wanted(**{name: options[name] for name in names})


def summarise(imported: ImportedResults) -> dict[str, Any]:
    """The object that `import_results --json` prints."""
    evaluation = imported.evaluation
    averages = average_scores(evaluation)
    return {
        "evaluation": evaluation.pk,
        "dataset": evaluation.dataset_version.dataset.name,
        "cases": averages.cases,
        "results": averages.results,
        "errors": averages.errors,
        "left_out": len(imported.problems),
        "known": not imported.is_new,
        "accuracy": averages.accuracy,
        "effectiveness": averages.effectiveness,
        "harness": evaluation.harness.name,
    }


def _format(imported: ImportedResults, summary: dict[str, Any]) -> str:
    """The same for people."""
    evaluation = imported.evaluation
    averages = average_scores(evaluation)
    known = "" if imported.is_new else _(" (known already)")
    scores = [
        f"{name} {value:.2f}"
        for name, value in (("accuracy", averages.accuracy), ("effectiveness", averages.effectiveness))
        if value is not None
    ]
    where = f"{evaluation.harness.name}, {evaluation.dataset_version}"
    return f"evaluation {evaluation.pk}{known} of {where}: {format_counts(summary)}; {', '.join(scores) or 'no score'}"
