"""Names of new clusters from the terms of some of their members."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evolution.loop.failure_text import describe_failure
from evolution.loop.grouping import Group
from evolution.loop.naming import name_clusters
from evolution.loop.visibility import is_visible_to_models
from evolution.models import FailureCase

Ids = NDArray[np.int64]

# Members whose words name a cluster, the strongest first.
READ = 40
# Of what is in no cluster, as many are enough to know which words are everybody's.
READ_OUTSIDE = 400


def name_groups(groups: Mapping[int, Group], ids: Ids, owners: Ids) -> None:
    """Give each group that is new, with a negative owner, a name that tells it from the others."""
    if not any(owner < 0 for owner in groups):
        return
    chosen: list[int] = []
    labels: list[int] = []
    for label, group in enumerate(groups.values()):
        strongest = group.rows[np.argsort(-group.strengths, kind="stable")[:READ]]
        chosen += ids[np.sort(strongest)].tolist()
        labels += [label] * len(strongest)
    outside = ids[owners == 0][:READ_OUTSIDE].tolist()
    texts = _nameable_texts(chosen + outside)
    names = name_clusters(texts, labels + [-1] * len(outside))
    titles = dict(FailureCase.objects.filter(pk__in=chosen).values_list("pk", "title"))
    for label, (owner, group) in enumerate(groups.items()):
        if owner < 0:
            group.name = names[label] or titles[int(ids[group.rows[0]])]


def _nameable_texts(case_ids: Sequence[int]) -> list[str]:
    """A cluster's name goes to the model, so guard cases lend it no words."""
    cases = FailureCase.objects.filter(pk__in=case_ids).select_related("dataset_case")
    found = cases.only("embedded_text", "findings", "symptom", "request", "dataset_case__split").in_bulk()
    return [_nameable_text(found[pk]) if pk in found else "" for pk in case_ids]


def _nameable_text(case: FailureCase) -> str:
    if not is_visible_to_models(case):
        return ""
    return describe_failure(case) if case.findings else case.embedded_text
