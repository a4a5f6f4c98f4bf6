import pytest
from django.contrib.auth.models import User

from evolution.actions.case_notes import add_note, assign_case, set_tags
from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import LoopError
from evolution.models import Event, FailureCase
from tests.evolution.intake import make_failure
from tests.evolution.measured import DEV, make_harness

ANNOTATOR = Actor("ann", Role.ANNOTATOR)


@pytest.fixture
def case(db: None) -> FailureCase:
    return make_failure(make_harness())


def verbs() -> list[str]:
    return list(Event.objects.filter(target_kind="failurecase").order_by("pk").values_list("verb", flat=True))


def test_tags_are_kept_once_and_in_order(case: FailureCase) -> None:
    set_tags(DEV, case, ["price", " double  11 ", "price"])

    case.refresh_from_db()
    assert case.tags == ["price", "double 11"]


def test_a_change_of_tags_is_in_the_audit_trail(case: FailureCase) -> None:
    set_tags(DEV, case, ["a", "b"])
    set_tags(DEV, case, ["b", "c"])
    set_tags(DEV, case, ["b", "c"])

    assert verbs() == ["failurecase.tagged"] * 2
    assert Event.objects.latest("pk").data == {"added": ["c"], "removed": ["a"]}


@pytest.mark.parametrize("tag", ["", "a,b", "a，b", "x" * 65])
def test_what_is_no_tag_is_refused(case: FailureCase, tag: str) -> None:
    with pytest.raises(LoopError):
        set_tags(DEV, case, [tag])


def test_a_case_is_somebodys_until_it_is_nobodys(case: FailureCase) -> None:
    person = User.objects.create_user("li")

    assign_case(DEV, case, person)
    assign_case(DEV, case, person)
    assign_case(DEV, case, None)

    case.refresh_from_db()
    assert case.assignee is None
    assert [event.data for event in Event.objects.order_by("pk")][-2:] == [
        {"assignee": "li"},
        {"assignee": ""},
    ]


def test_a_note_has_its_author_and_stays(case: FailureCase) -> None:
    add_note(ANNOTATOR, case, " 券后价不对 \n")

    assert [(note.author, note.text) for note in case.notes.all()] == [("ann", "券后价不对")]
    assert verbs() == ["failurecase.noted"]


@pytest.mark.parametrize("text", ["", "  ", "x" * 10_001])
def test_a_note_has_some_words_and_not_too_many(case: FailureCase, text: str) -> None:
    with pytest.raises(LoopError):
        add_note(DEV, case, text)


def test_a_viewer_keeps_nothing(case: FailureCase) -> None:
    viewer = Actor("vic", Role.VIEWER)
    for act in (lambda: add_note(viewer, case, "x"), lambda: set_tags(ANNOTATOR, case, ["x"])):
        with pytest.raises(NotAllowed):
            act()


@pytest.mark.django_db
def test_assigning_is_a_change_of_the_case() -> None:
    case = make_failure(make_harness())
    FailureCase.objects.filter(pk=case.pk).update(updated_at="2020-01-01T00:00Z")

    assign_case(DEV, case, User.objects.create_user("ben"))

    assert FailureCase.objects.get(pk=case.pk).updated_at.year > 2020
