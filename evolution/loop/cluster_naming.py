"""Names and descriptions of clusters from the diagnoser: members beside the nearest failures that are none.

People's names stay, and so does a name that a model gave: it is what people know the cluster by.
"""

import logging
from collections.abc import Sequence

import numpy as np
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from evolution.actors import Actor
from evolution.errors import LoopError
from evolution.loop.asking import ask_model
from evolution.loop.failure_text import describe_failure
from evolution.loop.jobs import Progress
from evolution.models import Cluster, Event, FailureCase, Harness
from evolution.ports import NamedModel
from evolution.prompts.cluster_name import ClusterName, cluster_name_request
from evolution.states import CaseState, Split
from evolution.transitions import record

logger = logging.getLogger(__name__)

# Clusters that one clustering has named, the largest first; a call each.
MOST_NAMED = 40
MEMBERS = 12
# Other clusters whose failures are shown beside the members, and failures of each.
NEIGHBOURS, OF_EACH = 3, 3
TAKEN = 100

MODEL, PEOPLE = "model", "people"


def name_with_model(actor: Actor, harness: Harness, model: NamedModel, progress: Progress) -> int:
    """Have the clusters named that only terms name; returns how many were.

    A model that can't be asked leaves the rest as they are; the next clustering asks again.
    """
    named = 0
    wanted = list(_unnamed(harness)[:MOST_NAMED])
    others = list(_living(harness))
    for place, cluster in enumerate(wanted):
        progress(place, len(wanted), "naming clusters")
        try:
            named += _name(actor, cluster, others, model)
        except LoopError as problem:
            logger.warning("clusters of %s keep the names of their terms: %s", harness, problem)
            break
    return named


def is_named_by_people(cluster: Cluster) -> bool:
    """Whether a person named it; of older installations the audit trail knows."""
    renamed = Event.objects.filter(verb="cluster.renamed", target_kind="cluster", target_id=cluster.pk)
    return cluster.named_by == PEOPLE or renamed.exists()


def _living(harness: Harness) -> QuerySet[Cluster]:
    is_open = Q(members__state=CaseState.OPEN)
    clusters = Cluster.objects.filter(harness=harness, merged_into=None)
    return clusters.annotate(size=Count("members", filter=is_open)).filter(size__gt=0)


def _unnamed(harness: Harness) -> QuerySet[Cluster]:
    unnamed = _living(harness).filter(named_by="", diagnoses=None)
    return unnamed.order_by(F("size").desc(), "number")


def _name(actor: Actor, cluster: Cluster, others: Sequence[Cluster], model: NamedModel) -> bool:
    members = _shown(cluster, MEMBERS)
    if not members or is_named_by_people(cluster):
        return False
    near = [text for other in _nearest(cluster, others) for text in _shown(other, OF_EACH)]
    taken = [other.name for other in others if other.pk != cluster.pk][:TAKEN]
    request = cluster_name_request(members, near, taken, model=model.name)
    answer = ask_model(model, request, ClusterName)
    name = " ".join(answer.name.split())[:200]
    with transaction.atomic():
        # A person may have named it while the model was asked.
        unnamed = Cluster.objects.filter(pk=cluster.pk, named_by="", name=cluster.name)
        if not name or not unnamed.update(name=name, description=answer.description, named_by=MODEL):
            return False
        record(actor, "cluster.named", cluster, "", old=cluster.name, new=name, model=model.name)
    return True


def _shown(cluster: Cluster, count: int) -> list[str]:
    """What the strongest open members say that a model may see."""
    visible = Q(dataset_case=None) | Q(dataset_case__split=Split.DEV)
    members = FailureCase.objects.filter(visible, cluster=cluster, state=CaseState.OPEN)
    chosen = members.only("findings", "symptom", "request", "embedded_text").order_by("-strength", "pk")
    return [describe_failure(case) or case.embedded_text for case in chosen[:count]]


def _nearest(cluster: Cluster, others: Sequence[Cluster]) -> list[Cluster]:
    own = np.frombuffer(cluster.centroid or b"", dtype=np.float32)
    near = []
    for other in others:
        centre = np.frombuffer(other.centroid or b"", dtype=np.float32)
        if other.pk != cluster.pk and len(own) and centre.shape == own.shape:
            near.append((-float(own @ centre), other.number, other))
    return [other for _cosine, _number, other in sorted(near, key=lambda entry: entry[:2])[:NEIGHBOURS]]
