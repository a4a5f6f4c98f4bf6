"""Beside the stages: known cases become an immutable dataset version. The same cases are the same version."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.demonstration import CaseData
from evolution.errors import BrokenInput
from evolution.models import Dataset, DatasetCase, DatasetVersion, Evaluation, Harness
from evolution.transitions import record

# In the origin of imported results: they are of cases that had been there.
MATCHED = "matched"


def import_dataset(actor: Actor, harness: Harness, name: str, cases: Sequence[CaseData]) -> DatasetVersion:
    """Store the cases as the newest version of the harness's dataset `name`, or return the version that has them.

    Raises BrokenInput when there is no case or a key stands twice.
    """
    _check_keys(cases)
    digest = digest_cases(cases)
    with transaction.atomic():
        Dataset.objects.get_or_create(harness=harness, name=name)
        # Two imports at once would both take the next number.
        dataset = Dataset.objects.select_for_update().get(harness=harness, name=name)
        known = dataset.versions.filter(digest=digest).first()
        if known is not None:
            return known
        newest = dataset.versions.aggregate(number=Max("number"))["number"] or 0
        version = DatasetVersion.objects.create(dataset=dataset, number=newest + 1, digest=digest)
        DatasetCase.objects.bulk_create(
            [DatasetCase(version=version, **asdict(case)) for case in cases], batch_size=500
        )
        record(actor, "dataset.imported", version, dataset=name, number=version.number, cases=len(cases))
    return version


def leave_out_imported(versions: QuerySet[DatasetVersion]) -> QuerySet[DatasetVersion]:
    """Without those whose cases came with results that were made elsewhere: nobody said to measure by them."""
    brought = Evaluation.objects.exclude(origin={}).exclude(origin__has_key=MATCHED)
    return versions.exclude(evaluations__in=brought)


def digest_cases(cases: Sequence[CaseData]) -> str:
    """SHA-256 over the cases' whole content, whatever their order."""
    content = sorted((_content(case) for case in cases), key=lambda case: str(case["key"]))
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _content(case: CaseData) -> dict[str, Any]:
    content = asdict(case)
    # Versions from before there were faults keep their digest.
    if not case.faults:
        del content["faults"]
    return content


def _check_keys(cases: Sequence[CaseData]) -> None:
    if not cases:
        raise BrokenInput(_("a dataset needs at least one case"))
    twice = [key for key, times in Counter(case.key for case in cases).items() if times > 1]
    if twice:
        raise BrokenInput(_("these case keys stand twice: %(keys)s") % {"keys": ", ".join(sorted(twice))})
