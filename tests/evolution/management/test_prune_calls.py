import json
import uuid
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from evolution.loop import pruning
from evolution.models import ModelCall

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _calls() -> None:
    now = timezone.now()
    for model, days in (("old", 100), ("old", 10), ("new", 100), ("new", 0)):
        ModelCall.objects.create(
            key=uuid.uuid4(),
            role="judge",
            model=model,
            reply={"content": "x"},
            used_at=now - timedelta(days=days),
        )


def prune(*options: str) -> dict[str, object]:
    out = StringIO()
    call_command("prune_calls", *options, "--json", stdout=out)
    found: dict[str, object] = json.loads(out.getvalue())
    return found


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        ((), 2),
        (("--unused-for", "5"), 3),
        (("--model", "old"), 2),
        (("--model", "old", "--unused-for", "50"), 1),
        (("--unused-for", "0"), 4),
        (("--model", "none"), 0),
    ],
)
def test_what_is_named_goes_and_nothing_else(options: tuple[str, ...], gone: int) -> None:
    assert prune(*options)["calls"] == gone
    assert ModelCall.objects.count() == 4 - gone


def test_a_dry_run_says_the_same_and_keeps_all() -> None:
    said = prune("--dry-run")
    assert said == {**prune(), "deleted": False}
    # JSONB of {"content": "x"}, as PostgreSQL counts it.
    assert said["calls"] == 2
    assert isinstance(said["bytes"], int)
    assert said["bytes"] > 2 * len("contentx")


def test_many_go_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "AT_ONCE", 1)
    assert prune("--unused-for", "0")["calls"] == 4


def test_people_read_calls_and_size() -> None:
    out = StringIO()
    call_command("prune_calls", stdout=out)
    assert out.getvalue() == "2 kept calls deleted, 0.0 MiB of replies\n"


def test_days_that_are_none_are_refused() -> None:
    with pytest.raises(CommandError, match="--unused-for -1") as raised:
        prune("--unused-for", "-1")
    assert raised.value.returncode == 2
