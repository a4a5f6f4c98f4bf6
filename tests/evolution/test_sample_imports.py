"""The sample data as users of the field have it: every folder comes in, adds up, and adds nothing the second time."""

import pytest

from evolution.actions.imports import import_paths
from evolution.loop.cases import COUNTS
from evolution.loop.imports import ImportOptions
from evolution.models import FailureCase, Harness, ImportRun
from tests.evolution.intake import DATA, needs_data
from tests.evolution.measured import DEV

pytestmark = [pytest.mark.django_db, needs_data]

# Records and failures that are known from elsewhere; see the README of the data.
KNOWN = {
    "tau_bench/gpt-4o-airline.json": (200, 116),
    # 20 tasks of which 10 and 13 pass, 40 of which 34 and 34 do
    "tau2_bench": (120, 10 + 7 + 6 + 6),
    "crosswoz_intents": (3591, 3591),
    "intents": (3080, 3080),
    "sharegpt": (300, 300),
}
FOLDERS = sorted(path.name for path in DATA.iterdir() if path.is_dir()) if DATA.is_dir() else []


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def take(harness: Harness, name: str, *, only_failures: bool = True) -> dict[str, int]:
    run = import_paths(DEV, harness, [DATA / name], ImportOptions(only_failures=only_failures))
    return {figure: getattr(run, figure) for figure in COUNTS}


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_file_has_the_records_and_failures_that_are_known(harness: Harness, name: str) -> None:
    report = take(harness, name)
    assert (report["read"], report["new"] + report["duplicate"]) == KNOWN[name]
    assert report["rejected"] == 0


@pytest.mark.parametrize("name", FOLDERS)
def test_every_folder_adds_up_and_adds_nothing_again(harness: Harness, name: str) -> None:
    first = take(harness, name, only_failures=False)
    cases = FailureCase.objects.count()
    again = take(harness, name, only_failures=False)
    for report in (first, again):
        assert report["read"] == sum(report.values()) - report["read"] > 0
    assert (again["new"], again["updated"], FailureCase.objects.count()) == (0, 0, cases)
    assert again["duplicate"] == first["new"] + first["duplicate"]
    assert again["rejected"] == first["rejected"]
    assert ImportRun.objects.latest("pk").masked == {}
