import stat
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User

from workbench.sign_in import create_first_account

pytestmark = pytest.mark.django_db


def test_the_first_account_is_an_operator_with_the_password_of_the_file(tmp_path: Path) -> None:
    first = create_first_account(tmp_path)
    assert first is not None
    assert authenticate(username="admin", password=first.password) is not None
    assert User.objects.get(username="admin").groups.get().name == "operator"
    assert first.path.read_text() == f"username: admin\npassword: {first.password}\n"
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o600


def test_an_installation_with_accounts_gets_none(tmp_path: Path) -> None:
    User.objects.create_user("someone")
    assert create_first_account(tmp_path) is None
    assert not (tmp_path / "sign-in.txt").exists()


def test_passwords_differ_between_installations(tmp_path: Path) -> None:
    first = create_first_account(tmp_path)
    User.objects.all().delete()
    second = create_first_account(tmp_path)
    assert first is not None
    assert second is not None
    assert first.password != second.password
