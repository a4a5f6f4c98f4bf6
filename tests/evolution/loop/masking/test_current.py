import pytest

from evolution.loop.masking import SHIPPED, current_masker, current_rules
from evolution.models import MaskingRule

pytestmark = pytest.mark.django_db


def test_without_rows_the_shipped_rules_are_in_force() -> None:
    assert current_rules() == list(SHIPPED)


def test_a_row_with_the_name_of_a_shipped_rule_stands_in_for_it() -> None:
    MaskingRule.objects.create(name="phone", label="tel", pattern=r"\d{3}-x")
    assert current_masker().mask_text("13812345678 123-x") == "13812345678 [tel 1]"


def test_a_rule_that_is_off_finds_nothing() -> None:
    MaskingRule.objects.create(name="phone", label="phone", pattern="x", is_enabled=False)
    assert current_masker().mask_text("13812345678") == "13812345678"


def test_a_rule_of_peoples_own_is_added() -> None:
    MaskingRule.objects.create(name="badge", label="badge", pattern=r"emp-(?P<secret>\d+)")
    assert current_masker().mask_text("emp-42 13812345678") == "emp-[badge 1] [phone 1]"


def test_for_secrets_alone_personal_data_stays() -> None:
    MaskingRule.objects.create(name="vault", label="vault", pattern=r"vlt\d+", is_secret=True)
    masked = current_masker(only_secrets=True).mask_text("vlt1 13812345678 Bearer abcdef123456")
    assert masked == "[vault 1] 13812345678 Bearer [token 1]"
