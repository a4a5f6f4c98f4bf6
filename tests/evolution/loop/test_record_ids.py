from evolution.loop.record_ids import RecordIds
from evolution.ports import Record
from tests.evolution.intake import make_record


def name_all(*records: Record) -> list[str]:
    ids = RecordIds()
    return [ids.name(record).source_id for record in records]


def test_the_first_record_of_an_id_keeps_it() -> None:
    first, second = name_all(make_record("x", "one"), make_record("x", "two"))
    assert first == "x"
    assert second.startswith("x~")


def test_later_records_are_named_by_what_is_in_them_wherever_they_stand() -> None:
    one, two, three = (make_record("x", text) for text in ("one", "two", "three"))
    assert set(name_all(one, two, three)) == set(name_all(one, three, two))


def test_records_that_are_alike_are_numbered() -> None:
    ids = name_all(*[make_record("x")] * 4)
    assert len(set(ids)) == 4
    assert ids[3] == f"{ids[1]}~3"


def test_an_id_that_looks_like_a_suffixed_one_stays_apart() -> None:
    second = name_all(make_record("x", "one"), make_record("x", "two"))[1]
    ids = name_all(make_record("x", "one"), make_record(second, "other"), make_record("x", "two"))
    assert len(set(ids)) == 3
    assert ids[1] == second


def test_the_same_id_in_two_sources_is_two_ids() -> None:
    ids = RecordIds()
    assert ids.name(make_record("x")).source_id == "x"
    assert ids.name(make_record("x"), "other").source_id == "x"


def test_long_ids_are_shortened_and_stay_apart() -> None:
    ids = name_all(make_record("i" * 300 + "a"), make_record("i" * 300 + "b"), make_record("i" * 300 + "b"))
    assert len(set(ids)) == 3
    assert max(map(len, ids)) <= 200
