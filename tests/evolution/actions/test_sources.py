import pytest

from evolution.actions.sources import change_source, create_source, rotate_token, set_enabled
from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import BrokenInput, LoopError
from evolution.loop.failure_rules import from_json, parse_rule
from evolution.models import Event, Harness, Source
from evolution.queries.sources import find_source
from tests.evolution.measured import DEV, make_harness

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return make_harness()


def test_a_source_is_found_by_its_token_of_which_only_a_digest_is_kept(harness: Harness) -> None:
    source, token = create_source(DEV, harness, "production")
    assert find_source(token) == source
    assert token not in str(Source.objects.values().get())
    assert token not in str(list(Event.objects.values()))


def test_a_new_token_ends_the_old_one(harness: Harness) -> None:
    source, old = create_source(DEV, harness, "production")
    new = rotate_token(DEV, source)
    assert (find_source(old), find_source(new)) == (None, source)
    assert Event.objects.filter(verb="source.token_rotated").count() == 1


def test_a_source_without_a_token_is_found_by_none(harness: Harness) -> None:
    Source.objects.create(harness=harness, name="files", created_by="d")
    assert find_source("") is None


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "evaluation", "create"])
def test_names_that_an_address_or_a_case_cannot_have_are_refused(harness: Harness, name: str) -> None:
    with pytest.raises(LoopError):
        create_source(DEV, harness, name)


def test_two_sources_of_a_harness_have_two_names(harness: Harness) -> None:
    create_source(DEV, harness, "production")
    with pytest.raises(LoopError, match="already"):
        create_source(DEV, harness, "production")
    assert Source.objects.count() == 1


def test_the_settings_of_a_source_are_kept_and_told(harness: Harness) -> None:
    source, _token = create_source(DEV, harness, "production")
    change_source(DEV, source, fmt="jsonl", rule=parse_rule("reward<0.5"), mapping={"reply": "answer"})
    source.refresh_from_db()
    assert (source.format, source.mapping, str(from_json(source.rule))) == (
        "jsonl",
        {"reply": "answer"},
        "reward<0.5",
    )
    assert Event.objects.filter(verb="source.changed").count() == 1
    with pytest.raises(BrokenInput):
        change_source(DEV, source, fmt="unheard-of", rule=None, mapping={})


def test_viewers_change_nothing(harness: Harness) -> None:
    source, _token = create_source(DEV, harness, "production")
    viewer = Actor("v", Role.VIEWER)
    for act in (
        lambda: create_source(viewer, harness, "x"),
        lambda: rotate_token(viewer, source),
        lambda: set_enabled(viewer, source, is_enabled=False),
        lambda: change_source(viewer, source, fmt="auto", rule=None, mapping={}),
    ):
        with pytest.raises(NotAllowed):
            act()
