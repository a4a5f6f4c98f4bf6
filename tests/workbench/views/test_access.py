import shutil

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from evolution.loop.repositories import open_repository
from evolution.models import Event
from tests.workbench.views.conftest import World
from tests.workbench.views.pages import list_actions, list_pages

# The last one asks for a token of its own; so does the API, which the tests of workbench.api call.
OPEN = {"login", "healthz", "set_language", "otlp_traces"}
# What everybody may do for themselves.
OWN = {"view_save"}
UPLOADS = {"results_import"}
# One file of a change, which is not there when git has not the change.
FILES_OF_CHANGES = {"proposal_file", "step_file", "history_file"}


def name_routes(routes: list[URLPattern | URLResolver]) -> set[str]:
    names: set[str] = set()
    for route in routes:
        if isinstance(route, URLPattern):
            names.add(str(route.name))
        elif route.namespace not in {"admin", "api-1"}:
            names |= name_routes(route.url_patterns)
    return names


def test_every_address_of_a_harness_is_covered_here(world: World) -> None:
    known = set(list_pages(world)) | set(list_actions(world))

    assert name_routes(get_resolver().url_patterns) - known == OPEN | {"home", "logout"}


def test_every_page_and_action_asks_for_a_sign_in(world: World, outsider: Client) -> None:
    addresses = ["/", "/admin/", *list_pages(world).values(), *list_actions(world).values()]

    answers = {address: outsider.post(address) for address in addresses}

    assert {address for address, answer in answers.items() if answer.status_code != 302} == set()
    assert all("login" in answer.headers["Location"] for answer in answers.values())


def test_a_viewer_reads_everything(world: World, viewer: Client) -> None:
    answers = {name: viewer.get(address).status_code for name, address in list_pages(world).items()}

    assert set(answers.values()) == {200}


def test_a_viewer_changes_nothing(world: World, viewer: Client) -> None:
    check_nothing_changes(world, viewer, list_actions(world))


def check_nothing_changes(world: World, client: Client, actions: dict[str, str]) -> None:
    """Whoever is signed in is refused all of these, for each is sent what it asks for."""
    before = Event.objects.count()
    fields = {
        "reason": "r",
        "decision": "promote",
        "feedback": "f",
        "hypothesis": "h",
        "name": "n",
        "ref": "main",
    }
    proposals = [world.step.proposals.get().pk]
    world.step.proposals.update(state="confirmed")
    version = world.harness.datasets.get().versions.get().pk

    for name, address in actions.items():
        upload = {"file": SimpleUploadedFile("x.json", b"[]")} if name in UPLOADS else {}
        extra = {"proposals": proposals, "dataset_version": version, "splits": ["dev"], "repeats": 1}
        answer = client.post(address, {**fields, **extra, **upload})
        assert answer.status_code == (302 if name in OWN else 403), name

    assert Event.objects.exclude(target_kind="savedview").count() == before


def test_an_action_is_not_done_by_reading_its_address(world: World, operator: Client) -> None:
    assert {operator.get(address).status_code for address in list_actions(world).values()} == {405}


def test_an_action_needs_the_csrf_token(world: World, developer: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = developer.cookies

    assert strict.post(world.url("clusters/start/")).status_code == 403


def test_a_record_of_another_harness_is_not_found(world: World, developer: Client) -> None:
    assert developer.get(f"/h/shop-judge/cases/{world.case.pk}/").status_code == 404


def test_the_refusal_says_which_role_it_takes(world: World, viewer: Client) -> None:
    answer = viewer.post(world.url("clusters/start/"))

    assert "developer" in answer.content.decode()


def test_no_action_stores_or_stumbles_over_a_nul(world: World, operator: Client) -> None:
    names = ("reason", "feedback", "hypothesis", "changes", "name", "ref", "path", "content", "proposals")
    before = Event.objects.count()

    for action, address in list_actions(world).items():
        if action not in {"case_reopen", "clusters_start", "cluster_diagnose", "diagnosis_draft"}:
            fields = {**dict.fromkeys(names, "a\0"), "decision": "revise"}
            assert operator.post(address, fields).status_code in {200, 302}, action

    texts = Event.objects.order_by("id")[before:].values_list("verb", "reason")
    assert [verb for verb, reason in texts if "a" in reason] == []


def test_no_page_breaks_when_the_repository_is_gone(world: World, viewer: Client) -> None:
    shutil.rmtree(open_repository(world.harness).path)

    answers = {name: viewer.get(address).status_code for name, address in list_pages(world).items()}

    assert {name for name, status in answers.items() if status not in {200, 302}} == FILES_OF_CHANGES
    assert {answers[name] for name in FILES_OF_CHANGES} == {404}
