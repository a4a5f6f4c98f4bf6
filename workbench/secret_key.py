"""The installation's own secret key, made once; a deployment sets SECRET_KEY instead."""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def load_secret_key(var: Path) -> str:
    """Return the key in `var`/secret_key, creating it (mode 600) when it is missing; ImproperlyConfigured.

    Two processes that start together agree: only one of them can create the name.
    """
    try:
        return _load_or_make(var)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{var / 'secret_key'} can't be used: {error.strerror}. "
            "WORKBENCH_VAR must name a folder that this user can write in; or set SECRET_KEY"
        ) from None


def _load_or_make(var: Path) -> str:
    path = var / "secret_key"
    try:
        return path.read_text()
    except FileNotFoundError:
        var.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"secret_key.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(48))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text()
