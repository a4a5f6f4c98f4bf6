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
from evolution.adapters.chat import Role
from evolution.adapters.model_choice import check_model
from evolution.errors import LoopError
from evolution.loop.halves import coming_round
from evolution.loop.visibility import hidden_cases, shown_members
from evolution.management.running import run_here
from evolution.models import Cluster, Diagnosis, Harness
from evolution.prompts.diagnosis import NOT_THE_HARNESS
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
        parser.add_argument("--model", default="", help="ask this model instead of the configured one")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Diagnose one cluster after the other; ends with an error when one came to nothing."""
        model = options["model"].strip()
        try:
            check_model(Role.DIAGNOSER, model)
            harness = ensure_starter(SYSTEM, options["harness"])
        except LoopError as error:
            raise CommandError(str(error)) from None
        clusters = self._choose(harness, options["cluster"])
        made, faults = list[int](), list[str]()
        for cluster in clusters:
            # What was made and paid is told, whatever becomes of the next.
            try:
                job = run_here(start_diagnosis(SYSTEM, cluster, model, enqueue=False))
            except (LoopError, CommandError) as error:
                faults.append(str(error))
                continue
            made += job.result["diagnoses"] if job.state == JobState.DONE else []
            faults += [job.message] if job.state == JobState.FAILED else []
        self._write(made, as_json=options["as_json"], nothing=not clusters)
        if faults:
            raise CommandError("\n".join(faults))

    def _choose(self, harness: Harness, number: int | None) -> list[Cluster]:
        clusters = Cluster.objects.filter(harness=harness).select_related("harness")
        if number is None:
            waiting = clusters.filter(state__in=UNDIAGNOSED)
            number = coming_round(harness)
            hidden = hidden_cases(harness, number)
            return [cluster for cluster in waiting if shown_members(cluster, number, hidden)]
        chosen = list(clusters.filter(number=number))
        if not chosen:
            raise CommandError(f"{harness} has no cluster {number}")
        return chosen

    def _write(self, made: list[int], *, as_json: bool, nothing: bool) -> None:
        found = Diagnosis.objects.select_related("cluster", "exchange", "harness").in_bulk(made)
        diagnoses = [found[pk] for pk in made]
        if as_json:
            shown = {"diagnoses": [_describe(diagnosis) for diagnosis in diagnoses]}
            self.stdout.write(json.dumps(shown, ensure_ascii=False))
            return
        if nothing:
            self.stdout.write(_("nothing to diagnose: no cluster with open failures waits for it"))
        told = None
        for diagnosis in diagnoses:
            if diagnosis.exchange_id is None or diagnosis.exchange_id != told:
                self.stdout.write(_head_line(diagnosis))
            told = diagnosis.exchange_id
            self.stdout.write("\n".join(_hypothesis_lines(diagnosis)))


def _head_line(diagnosis: Diagnosis) -> str:
    """What an answer is about, and what it cost."""
    head = f"cluster {diagnosis.cluster.number} {diagnosis.cluster.name}"
    exchange = diagnosis.exchange
    if exchange is None:
        return head
    cost = "" if exchange.cost is None else f", {exchange.cost:.4f} {exchange.currency}"
    return f"{head} ({diagnosis.model}, exchange {exchange.pk}, {exchange.seconds:.1f} s{cost})"


def _hypothesis_lines(diagnosis: Diagnosis) -> list[str]:
    """A hypothesis, and how it is drafted where that can be done."""
    blamed = f"{diagnosis.part} {diagnosis.path}".strip()
    head = f"  diagnosis {diagnosis.pk}: {diagnosis.rank}. {blamed}, {diagnosis.category}"
    lines = [f"{head}, confidence {diagnosis.confidence:.0%}", f"    {diagnosis.hypothesis}"]
    if diagnosis.part in NOT_THE_HARNESS:
        return lines
    which = (
        "" if diagnosis.harness.name == settings.DEFAULT_HARNESS else f" --harness {diagnosis.harness.name}"
    )
    return [*lines, f"    manage.py draft{which} --diagnosis {diagnosis.pk}"]


def _describe(diagnosis: Diagnosis) -> dict[str, Any]:
    """The object that `--json` prints for one hypothesis."""
    exchange = diagnosis.exchange
    return {
        "id": diagnosis.pk,
        "cluster": diagnosis.cluster.number,
        "rank": diagnosis.rank,
        "category": diagnosis.category,
        "part": diagnosis.part,
        "path": diagnosis.path,
        "hypothesis": diagnosis.hypothesis,
        "confidence": diagnosis.confidence,
        "evidence": diagnosis.evidence,
        "first_wrong_turns": diagnosis.first_wrong_turns,
        "changes": diagnosis.changes,
        "refuted_by": diagnosis.refuted_by,
        "model": diagnosis.model,
        "exchange": exchange.pk if exchange else None,
        # of the whole answer, which all hypotheses of one exchange share; null where the price is not known
        "cost": float(exchange.cost) if exchange and exchange.cost is not None else None,
        "seconds": exchange.seconds if exchange else None,
    }
