"""The first account of an installation. Everything after it is made by people in the browser."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import Group, User

USERNAME = "admin"


@dataclass(frozen=True)
class FirstSignIn:
    """What the person who installed this needs to get in."""

    username: str
    password: str
    path: Path


def create_first_account(var: Path) -> FirstSignIn | None:
    """Make the account `admin` with a random password, kept in `var`/sign-in.txt; None when accounts exist.

    The file is written first: were it the account, a crash in between would lock everybody out.
    """
    if User.objects.exists():
        return None
    password = secrets.token_urlsafe(12)
    path = var / "sign-in.txt"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"username: {USERNAME}\npassword: {password}\n")
    user = User.objects.create_superuser(USERNAME, password=password)
    operators, _ = Group.objects.get_or_create(name="operator")
    user.groups.add(operators)
    return FirstSignIn(USERNAME, password, path)
