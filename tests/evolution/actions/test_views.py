import pytest

from evolution.actions.views import delete_view, save_view
from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import LoopError
from evolution.models import Harness, SavedView
from evolution.queries.saved_views import list_views
from tests.evolution.measured import make_harness

pytestmark = pytest.mark.django_db
ANNA, BEN = Actor("anna", Role.DEVELOPER), Actor("ben", Role.VIEWER)


@pytest.fixture
def harness() -> Harness:
    return make_harness()


def test_a_view_of_the_same_name_takes_its_place(harness: Harness) -> None:
    save_view(ANNA, harness, "prices", "tag=price")

    save_view(ANNA, harness, " prices ", "tag=coupon")

    assert [(view.name, view.query) for view in SavedView.objects.all()] == [("prices", "tag=coupon")]


def test_people_see_their_own_views_and_shared_ones(harness: Harness) -> None:
    save_view(ANNA, harness, "mine", "tag=a")
    save_view(ANNA, harness, "ours", "tag=b", is_shared=True)
    save_view(BEN, harness, "his", "tag=c")

    assert [view.name for view in list_views(harness, "ben")] == ["his", "ours"]


def test_there_is_one_default_for_a_person(harness: Harness) -> None:
    save_view(ANNA, harness, "first", "tag=a", is_default=True)
    save_view(ANNA, harness, "second", "tag=b", is_default=True)
    save_view(BEN, harness, "his", "tag=c", is_default=True)

    opening = {
        name: [view.query for view in list_views(harness, name) if view.is_default]
        for name in ("anna", "ben")
    }
    assert opening == {"anna": ["tag=b"], "ben": ["tag=c"]}


def test_what_another_opens_the_inbox_with_is_no_default_of_mine(harness: Harness) -> None:
    save_view(ANNA, harness, "ours", "tag=b", is_shared=True, is_default=True)

    assert [view.is_default for view in list_views(harness, "ben")] == [False]


def test_viewers_share_nothing(harness: Harness) -> None:
    with pytest.raises(NotAllowed):
        save_view(BEN, harness, "his", "tag=c", is_shared=True)


@pytest.mark.parametrize("name", ["", "  ", "x" * 81])
def test_what_is_no_name_is_refused(harness: Harness, name: str) -> None:
    with pytest.raises(LoopError):
        save_view(ANNA, harness, name, "")


def test_others_views_are_for_operators_to_take_away(harness: Harness) -> None:
    view = save_view(ANNA, harness, "ours", "tag=b", is_shared=True)

    with pytest.raises(NotAllowed):
        delete_view(Actor("dora", Role.DEVELOPER), view)
    delete_view(Actor("olga", Role.OPERATOR), view)

    assert not SavedView.objects.exists()
