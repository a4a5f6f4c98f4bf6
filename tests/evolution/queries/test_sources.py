from datetime import timedelta

import pytest
from django.utils import timezone

from evolution.models import FailureCase, Sighting
from evolution.queries.sources import DAYS, list_sources
from tests.evolution.intake import make_failure
from tests.evolution.measured import make_harness
from tests.evolution.pushing import make_source

pytestmark = pytest.mark.django_db


def test_failures_and_sightings_are_counted_by_day() -> None:
    harness = make_harness()
    source, _headers = make_source(harness)
    cases = [
        make_failure(harness, source="production"),
        make_failure(harness, source="production", state="ignored"),
    ]
    make_failure(harness, source="another")
    FailureCase.objects.filter(pk=cases[1].pk).update(created_at=timezone.now() - timedelta(days=DAYS + 1))
    Sighting.objects.create(harness=harness, case=cases[0], source="production", source_id="again")
    line = list_sources(harness)[0]
    assert (line.source, line.cases, line.open, line.recent) == (source, 2, 1, 2)
    assert line.days[-1] == (timezone.localdate(), 2)
