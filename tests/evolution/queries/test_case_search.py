import random
from collections.abc import Callable

import pytest

from evolution.loop.search_index import index_texts
from evolution.loop.search_text import BLOCK, fold, store_texts
from evolution.models import FailureCase, Harness
from evolution.queries import case_search
from evolution.queries.case_search import search_cases
from evolution.queries.case_terms import split_terms
from tests.evolution.intake import make_failure
from tests.evolution.measured import make_harness

pytestmark = pytest.mark.django_db

WORDS = ("券后价", "多少钱", "refund", "order", "E40217", "地址", "ok", "W-10", "退款失败", "timeout")


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("", []),
        ("  Refund   ORDER ", ["refund", "order"]),
        ('"not found" 券后价', ["not found", "券后价"]),
        ("“券后 价” x", ["券后 价", "x"]),
        ('half "open quote', ["half", '"open', "quote"]),
        ("order orders", ["orders"]),
        ('""', []),
    ],
)
def test_words_and_phrases_are_told_apart(typed: str, terms: list[str]) -> None:
    assert split_terms(typed) == terms


@pytest.fixture
def harness() -> Harness:
    return make_harness()


@pytest.fixture(params=["indexed", "waiting", "half"])
def replies(request: pytest.FixtureRequest, harness: Harness) -> dict[int, str]:
    """What 80 cases in four blocks of ids say, by id: all in the index, none of them yet, or every other one."""
    rolls = random.Random(5)  # noqa: S311  nothing is to be kept secret
    said = {}
    for number in range(80):
        pk = 10_000_000 + (number % 4) * BLOCK + number
        reply = " ".join(rolls.choices(WORDS, k=3)) + f" case{number:03d}"
        case = make_failure(harness, "t", pk=pk, reply=reply, state="open" if number % 3 else "ignored")
        said[case.pk] = reply
        if request.param == "half" and number == 40:
            index_texts()
    if request.param == "indexed":
        index_texts()
    return said


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is asked after two cases."""
    monkeypatch.setattr(case_search, "FIRST_LOOK", 2)


def naive(replies: dict[int, str], text: str, keep: Callable[[int], bool] = lambda _pk: True) -> list[int]:
    """The newest first, by going through all of them."""
    terms = split_terms(text)
    return [
        pk for pk in sorted(replies, reverse=True) if keep(pk) and all(t in fold(replies[pk]) for t in terms)
    ]


TEXTS = (
    "券后",
    "后价",
    "价",
    "refund",
    "efun",
    "e40217",
    "W-10",
    "退款失败 ok",
    "order refund",
    "case017",
    '"refund order"',
)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("text", [*TEXTS, "absent", "没有这词", "ok", "k"])
def test_a_search_finds_what_going_through_all_texts_finds(
    harness: Harness, replies: dict[int, str], text: str
) -> None:
    cases = FailureCase.objects.filter(harness=harness)

    down = search_cases(cases, split_terms(text), 1000)
    up = search_cases(cases, split_terms(text), 1000, upwards=True)

    assert down.ids == naive(replies, text)
    assert up.ids == naive(replies, text)[::-1]
    assert down.is_exhausted


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("text", TEXTS)
def test_pages_of_a_search_are_in_a_row(harness: Harness, replies: dict[int, str], text: str) -> None:
    cases = FailureCase.objects.filter(harness=harness, state="open")
    open_ids = set(cases.values_list("pk", flat=True))
    seen: list[int] = []
    while found := search_cases(cases.filter(pk__lt=seen[-1] if seen else 2**62), split_terms(text), 4).ids:
        assert len(found) <= 4
        seen += found

    assert seen == naive(replies, text, lambda pk: pk in open_ids)


def test_a_search_that_takes_too_long_says_how_far_it_came(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case_search, "FIRST_LOOK", 2)
    for number in range(6):
        make_failure(harness, "t", reply=f"r{number}")

    found = search_cases(FailureCase.objects.filter(harness=harness), ["zz"], 10, patience=-1)

    newest = list(FailureCase.objects.order_by("-pk").values_list("pk", flat=True))
    assert (found.ids, found.stopped_at, found.is_exhausted) == ([], newest[1], False)


def test_a_percent_sign_and_an_underscore_are_characters(harness: Harness) -> None:
    case = make_failure(harness, "t", reply="100% sure_thing")
    make_failure(harness, "t", reply="1000 sureXthing")
    store_texts([case])

    found = search_cases(FailureCase.objects.filter(harness=harness), split_terms("0% sure_t"), 10)

    assert found.ids == [case.pk]
