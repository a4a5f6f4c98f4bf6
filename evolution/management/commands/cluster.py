"""Clusters the open failures of a harness."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from evolution.actions.clusters import start_clustering
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.errors import LoopError
from evolution.management.counting import count_cases, count_clusters, count_open_cases
from evolution.management.running import run_here
from evolution.models import Cluster
from evolution.states import CaseState, JobState

FIGURES = ("cases", "clusters", "unclustered")
JSON_HELP = 'print {"cases", "clusters", "unclustered"} as one JSON object'


class Command(BaseCommand):
    """Runs in this process; no worker is needed."""

    help = (
        "Cluster the open failures of a harness, as the button 'Cluster now' does. Clusters keep their numbers and "
        "their failures; what people merged, split off or pinned stays."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--harness",
            default=settings.DEFAULT_HARNESS,
            help="the harness whose failures are clustered (default: %(default)s)",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help=JSON_HELP)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Cluster, and print the figures."""
        try:
            harness = ensure_starter(SYSTEM, options["harness"])
            job = run_here(start_clustering(SYSTEM, harness, enqueue=False))
        except LoopError as error:
            raise CommandError(str(error)) from None
        if job.state == JobState.FAILED:
            raise CommandError(job.message)
        figures = {name: job.result[name] for name in FIGURES}
        if options["as_json"]:
            self.stdout.write(json.dumps(figures))
            return
        values = {
            "cases": count_open_cases(figures["cases"]),
            "clusters": count_clusters(figures["clusters"]),
            "unclustered": figures["unclustered"],
        }
        self.stdout.write(_("%(cases)s: %(clusters)s, %(unclustered)d unclustered") % values)
        for cluster in Cluster.objects.filter(harness=harness, merged_into=None):
            size = cluster.members.filter(state=CaseState.OPEN).count()
            cases = count_cases(size)
            self.stdout.write(f"{cluster.number:>4}  {cases:>10}  {cluster.state:<11}  {cluster.name}")
