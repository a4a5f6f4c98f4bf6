"""Loads the demonstration: starter harness and judge, dataset, the first measurement, its failures in clusters."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.actions.cases import take_failures
from evolution.actions.clusters import start_clustering
from evolution.actions.evaluations import start_evaluation
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.demonstration import load_cases
from evolution.errors import LoopError
from evolution.loop.datasets import import_dataset
from evolution.management.counting import count_clusters, count_failures
from evolution.management.infrastructure import tell_what_is_away
from evolution.models import Evaluation, Event, Harness
from evolution.states import CaseState
from evolution.tasks.evaluations import perform_evaluation
from evolution.tasks.jobs import perform_job

NAME = "live_commerce"


class Command(BaseCommand):
    """Each part is made only when it is not there, so it can be repeated, also after it was killed."""

    help = "Load the demonstration: harness, judge, dataset, the first measurement, and its failures in clusters."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--no-clusters",
            action="store_true",
            help="leave the failures unclustered; the embedder is slow to start",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Load what is missing."""
        try:
            with tell_what_is_away():
                was_there = Harness.objects.filter(name=NAME).exists()
                harness = self._load(with_clusters=not options["no_clusters"])
        except LoopError as error:
            raise CommandError(str(error)) from None
        figures = f"{count_failures(harness.failures.count())}, {count_clusters(harness.clusters.count())}"
        state = "is there already" if was_there else "is loaded"
        self.stdout.write(f"the demonstration {state}: harness {harness.name}, {figures}")

    def _load(self, *, with_clusters: bool) -> Harness:
        harness = ensure_starter(SYSTEM, NAME)
        import_dataset(SYSTEM, harness, NAME, load_cases())
        self._take_failures(self._measure(harness))
        if with_clusters:
            self._cluster(harness)
        return harness

    def _measure(self, harness: Harness) -> Evaluation:
        """Measure the first version; once is enough, whatever the harness has become since."""
        first = harness.releases.order_by("number")[0]
        known = harness.evaluations.filter(commit=first.commit, finished_at__isnull=False).first()
        if known is not None:
            return known
        evaluation = start_evaluation(SYSTEM, harness, first.commit, enqueue=False)
        perform_evaluation(evaluation)
        return evaluation

    def _take_failures(self, evaluation: Evaluation) -> None:
        taken = Event.objects.filter(verb="evaluation.failures_taken", target_id=evaluation.pk)
        if not taken.filter(target_kind="evaluation").exists():
            take_failures(SYSTEM, evaluation)

    def _cluster(self, harness: Harness) -> None:
        """Cluster once; what comes in later is for people to cluster."""
        if not harness.clusters.exists() and harness.failures.filter(state=CaseState.OPEN).exists():
            perform_job(start_clustering(SYSTEM, harness, enqueue=False).pk)
