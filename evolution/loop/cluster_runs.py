"""Keeps clusterings as they were, to compare them and to draw their map."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolution.actors import Actor
from evolution.loop.grouping import Change
from evolution.models import ClusterRun, Harness, RunGroup

# Clusterings that are kept of a harness; at 50,000 failures one takes a megabyte.
KEPT = 50


def keep_run(
    actor: Actor,
    harness: Harness,
    parameters: dict[str, Any],
    ids: NDArray[np.int64],
    places: NDArray[np.float32],
) -> ClusterRun:
    """Store a clustering with its map; the oldest of many go."""
    old = ClusterRun.objects.filter(harness=harness).order_by("-pk")[KEPT - 1 :]
    ClusterRun.objects.filter(pk__in=list(old.values_list("pk", flat=True))).delete()
    return ClusterRun.objects.create(
        harness=harness,
        parameters=parameters,
        point_ids=ids.astype("<i8").tobytes(),
        points=places.astype("<f4").tobytes(),
        created_by=actor.name,
    )


def keep_groups(run: ClusterRun, change: Change) -> None:
    """Store who was in which cluster, and who in none."""
    RunGroup.objects.bulk_create(
        RunGroup(
            run=run,
            cluster=change.filled[owner],
            case_ids=change.ids[np.sort(group.rows)].astype("<i8").tobytes(),
            origin=group.origin,
        )
        for owner, group in change.groups.items()
    )
    run.unclustered = change.ids[change.owners == 0].astype("<i8").tobytes()
    run.save(update_fields=["unclustered"])


def read_ids(data: bytes | memoryview) -> NDArray[np.int64]:
    """The case ids that a run or a group keeps."""
    return np.frombuffer(data, dtype="<i8")


def read_points(run: ClusterRun) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The map of a run: case ids, and their places, shape (cases, 2)."""
    return read_ids(run.point_ids), np.frombuffer(run.points, dtype="<f4").reshape(-1, 2)
