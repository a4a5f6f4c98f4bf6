from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DataError, connection, transaction

from evolution.loop.bulk_writing import analyse_new, insert_rows, update_rows
from evolution.models import FailureCase, Harness, Sighting

pytestmark = pytest.mark.django_db

ODD = "tab\t, newline\n, backslash \\ \\N \\., quote ' \", null \\u0000, 中文 🎉, \u202e, {a,b}"


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def make(harness: Harness, number: int, **fields: Any) -> FailureCase:
    values = {"source": "s", "source_id": str(number), "fingerprint": "f", "title": "t", **fields}
    return FailureCase(harness=harness, **values)


def values_of(case: FailureCase) -> dict[str, Any]:
    kept = FailureCase.objects.filter(pk=case.pk).values().get()
    return {name: value for name, value in kept.items() if name not in {"id", "created_at", "updated_at"}}


def test_rows_are_stored_as_the_orm_stores_them(harness: Harness) -> None:
    fields: dict[str, Any] = {
        "reply": ODD,
        "symptom": "",
        "request": {ODD: [ODD, 1, None, True, 0.1, 12345678901234567890123]},
        "context": [],
        "tags": [ODD[:40], "", 'a"b', "NULL"],
        "score": 0.1,
        "happened_at": datetime(2024, 6, 1, 12, tzinfo=UTC),
        "blamed_turn": None,
    }
    ours, theirs = make(harness, 1, **fields), make(harness, 2, **fields)
    insert_rows([ours])
    theirs.save()
    assert {**values_of(ours), "source_id": ""} == {**values_of(theirs), "source_id": ""}
    assert FailureCase.objects.get(pk=ours.pk).created_at is not None


def test_rows_that_were_inserted_can_be_saved_and_referred_to(harness: Harness) -> None:
    cases = [make(harness, number) for number in range(3)]
    insert_rows(cases)
    assert len({case.pk for case in cases}) == 3
    cases[0].title = "changed"
    cases[0].save()
    insert_rows([Sighting(harness=harness, case=cases[1], source="s", source_id="x")])
    assert FailureCase.objects.count() == 3
    assert Sighting.objects.get().case == cases[1]


def test_chosen_fields_of_rows_are_updated_each_with_its_own(harness: Harness) -> None:
    cases = [make(harness, number, note="kept") for number in range(3)]
    insert_rows(cases)
    before = FailureCase.objects.get(pk=cases[0].pk).updated_at
    for number, case in enumerate(cases):
        case.reply, case.request, case.score = f"{ODD}{number}", {"n": number}, number / 2
        case.happened_at, case.note = datetime(2024, 6, 1, number, tzinfo=UTC), "not written"
    update_rows(cases, ["reply", "request", "score", "happened_at", "blamed_turn", "cluster"])
    for number, case in enumerate(cases):
        case.refresh_from_db()
        assert (case.reply, case.request) == (f"{ODD}{number}", {"n": number})
        assert (case.score, case.note) == (number / 2, "kept")
        assert case.happened_at == datetime(2024, 6, 1, number, tzinfo=UTC)
    assert cases[0].updated_at > before


@pytest.mark.parametrize("fields", [{"reply": "\0"}, {"request": {"a": float("nan")}}, {"source": "s" * 65}])
def test_what_cannot_be_stored_is_an_error_that_leaves_the_transaction_usable(
    harness: Harness, fields: dict[str, Any]
) -> None:
    with pytest.raises((DataError, ValueError)), transaction.atomic():
        insert_rows([make(harness, 1), make(harness, 2, **fields)])
    insert_rows([make(harness, 3)])
    assert FailureCase.objects.get().source_id == "3"


def test_nothing_to_write_is_nothing(harness: Harness) -> None:
    insert_rows([])
    update_rows([], ["reply"])


def test_statistics_are_made_of_what_was_just_filled(harness: Harness) -> None:
    def known() -> float:
        with connection.cursor() as cursor:
            cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'evolution_failurecase'")
            return float(cursor.fetchone()[0])

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE evolution_failurecase CASCADE")
    analyse_new(FailureCase)
    assert known() == -1
    insert_rows([make(harness, number) for number in range(50)])
    analyse_new(FailureCase, Sighting)
    assert known() == 50
