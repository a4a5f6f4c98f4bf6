import pytest

from evolution.loop import search_index
from evolution.loop.search_index import index_texts
from evolution.loop.search_text import BLOCK, grams
from evolution.models import CaseText
from tests.evolution.intake import make_failure
from tests.evolution.measured import make_harness

pytestmark = pytest.mark.django_db


def test_texts_are_indexed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "BATCH", 2)
    harness = make_harness()
    for number in range(5):
        make_failure(harness, f"case {number}")

    assert index_texts() == 5

    stored = CaseText.objects.first()
    assert stored is not None
    assert stored.grams == grams(stored.text, stored.case_id // BLOCK).tolist()
    assert not CaseText.objects.filter(grams=None).exists()


def test_cases_from_before_there_was_a_search_get_their_text() -> None:
    case = make_failure(make_harness(), "券后价说错了")
    CaseText.objects.update(text="", grams=None)

    index_texts()

    assert "券后价说错了" in CaseText.objects.get(case=case).text


def test_nothing_to_do_is_no_work() -> None:
    assert index_texts() == 0
