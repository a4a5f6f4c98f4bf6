"""Has clusters diagnosed."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from evolution.actions.diagnosis import start_diagnosis
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.errors import LoopError
from evolution.loop.diagnosis import sample_members
from evolution.management.running import run_here
from evolution.models import Cluster, Diagnosis, Harness
from evolution.states import ClusterState, JobState

UNDIAGNOSED = (ClusterState.NEW, ClusterState.ESCALATING, ClusterState.REGRESSED)


class Command(BaseCommand):
    """Runs in this process; no worker is needed."""

    help = "Have the model diagnose one cluster, or all that wait for it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--harness", default=settings.DEFAULT_HARNESS, help="default: %(default)s")
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--cluster", type=int, metavar="NUMBER", help="number of the cluster in its harness"
        )
        which.add_argument("--all", action="store_true", help="all undiagnosed clusters (default)")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Diagnose one cluster after the other; ends with an error when one came to nothing."""
        try:
            harness = ensure_starter(SYSTEM, options["harness"])
            jobs = [
                run_here(start_diagnosis(SYSTEM, cluster, enqueue=False))
                for cluster in self._choose(harness, options["cluster"])
            ]
        except LoopError as error:
            raise CommandError(str(error)) from None
        made = [
            Diagnosis.objects.get(pk=job.result["diagnosis"]) for job in jobs if job.state == JobState.DONE
        ]
        failed = [job for job in jobs if job.state == JobState.FAILED]
        self._write(made, as_json=options["as_json"], nothing=not jobs)
        if failed:
            raise CommandError("\n".join(job.message for job in failed))

    def _choose(self, harness: Harness, number: int | None) -> list[Cluster]:
        clusters = Cluster.objects.filter(harness=harness).select_related("harness")
        if number is None:
            waiting = clusters.filter(state__in=UNDIAGNOSED)
            return [cluster for cluster in waiting if sample_members(cluster, 1)]
        chosen = list(clusters.filter(number=number))
        if not chosen:
            raise CommandError(f"{harness} has no cluster {number}")
        return chosen

    def _write(self, diagnoses: list[Diagnosis], *, as_json: bool, nothing: bool) -> None:
        if as_json:
            shown = [
                {
                    "cluster": diagnosis.cluster.number,
                    "part": diagnosis.part,
                    "hypothesis": diagnosis.hypothesis,
                    "evidence": diagnosis.evidence,
                }
                for diagnosis in diagnoses
            ]
            self.stdout.write(json.dumps({"diagnoses": shown}, ensure_ascii=False))
            return
        if nothing:
            self.stdout.write(_("nothing to diagnose: no cluster with open failures waits for it"))
        for diagnosis in diagnoses:
            name = f"{diagnosis.cluster.number} {diagnosis.cluster.name}"
            self.stdout.write(f"cluster {name}: {diagnosis.part} {diagnosis.path}\n  {diagnosis.hypothesis}")
