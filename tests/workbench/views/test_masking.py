import pytest
from django.test import Client

from evolution.models import MaskingRule
from tests.evolution.intake import make_failure
from tests.evolution.measured import make_harness

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true", "HX-Target": "results"}
FORM = {"label": "badge", "pattern": r"emp-(?P<secret>\d+)", "description": "staff", "is_enabled": "on"}


def test_the_list_shows_every_rule_and_offers_changes_to_operators(viewer: Client, operator: Client) -> None:
    page = viewer.get("/masking/").content.decode()
    assert "bank-card" in page
    assert "Switch off" not in page
    assert "Switch off" in operator.get("/masking/").content.decode()


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_text_is_masked_with_its_hits_marked_and_kept_nowhere(
    developer: Client, headers: dict[str, str]
) -> None:
    answer = developer.post("/masking/try/", {"text": "电话13812345678"}, headers=headers)
    assert '<mark title="phone">[phone 1]</mark>' in answer.content.decode()
    assert answer["Cache-Control"] == "no-store"


def test_an_operator_adds_changes_switches_and_deletes_a_rule(operator: Client) -> None:
    operator.post("/masking/rules/new/save/", FORM | {"name": "badge"})
    assert MaskingRule.objects.get().is_enabled
    operator.post("/masking/rules/badge/save/", FORM | {"label": "staff", "is_secret": "on"})
    rule = MaskingRule.objects.get()
    assert (rule.label, rule.is_secret) == ("staff", True)
    operator.post("/masking/rules/badge/switch/", {"off": "1"})
    assert not MaskingRule.objects.get().is_enabled
    operator.post("/masking/rules/badge/restore/")
    assert not MaskingRule.objects.exists()


def test_a_rule_that_cannot_work_is_shown_again_with_the_reason(operator: Client) -> None:
    page = operator.post(
        "/masking/rules/new/save/", FORM | {"name": "badge", "pattern": "(broken"}
    ).content.decode()
    assert "(broken" in page
    assert "is broken" in page
    assert not MaskingRule.objects.exists()


def test_a_new_rule_does_not_take_the_place_of_another(operator: Client) -> None:
    page = operator.post("/masking/rules/new/save/", FORM | {"name": "phone"}).content.decode()
    assert "already" in page
    assert not MaskingRule.objects.exists()


def test_a_rule_is_tried_on_the_newest_cases_before_it_is_saved(operator: Client) -> None:
    make_failure(make_harness(), "ask emp-42")
    page = operator.post("/masking/rules/new/save/", FORM | {"name": "badge", "try": "1"}, headers=HTMX)
    assert "1 hits in 1 of the newest 1 cases" in page.content.decode()
    assert not MaskingRule.objects.exists()


def test_developers_may_not_change_rules(developer: Client) -> None:
    assert developer.post("/masking/rules/new/save/", FORM | {"name": "badge"}).status_code == 403
    assert developer.post("/masking/rules/phone/switch/", {"off": "1"}).status_code == 403
    assert not MaskingRule.objects.exists()


def test_unknown_rules_are_404(viewer: Client) -> None:
    assert viewer.get("/masking/rules/unheard-of/").status_code == 404
    assert viewer.get("/masking/rules/phone/").status_code == 200
