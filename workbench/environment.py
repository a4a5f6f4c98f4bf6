"""Reads the environment for the settings; what can't be read is said with its variable and what to write instead."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

POSTGRES_SCHEMES = {"postgres", "postgresql", "psql", "pgsql"}


class Environment(environ.Env):  # type: ignore[misc]  # untyped
    """Variables with a type; ImproperlyConfigured names the one that doesn't have it."""

    def get_value(self, var: str, *args: Any, **kwargs: Any) -> Any:
        """The value of a variable in the type asked for; an empty one is as good as none where there is a default."""
        default = kwargs.get("default", self.NOTSET)
        # What docker compose makes of `${NAME:-}`: for a number or JSON an empty text says nothing.
        if default is not self.NOTSET and kwargs.get("cast") is not str and self.ENVIRON.get(var) == "":
            return default
        try:
            return super().get_value(var, *args, **kwargs)
        except ValueError as error:
            raise ImproperlyConfigured(f"{var} can't be read: {error}; correct it, or leave it out") from None

    def database(self, var: str) -> dict[str, Any]:
        """The database that a URL names, as Django's settings want it."""
        address = _split(self.str(var))
        if address is None or address.scheme not in POSTGRES_SCHEMES or not address.path.strip("/"):
            raise ImproperlyConfigured(
                f"{var} is not the address of a PostgreSQL database; write "
                "postgres://USER:PASSWORD@HOST:PORT/NAME, or leave it out to use the embedded one"
            )
        config: dict[str, Any] = self.db(var)
        return config

    def json_list(self, var: str) -> list[Any]:
        """A list in JSON, or in the file that the variable names; empty when it is not set."""
        value = self._json(var, "a list")
        if value is not None and not isinstance(value, list):
            raise ImproperlyConfigured(f"{var} must be a list in JSON, such as [{{...}}]")
        return value or []

    def json_object(self, var: str) -> dict[str, Any]:
        """An object in JSON, or in the file that the variable names; empty when it is not set."""
        value = self._json(var, "an object")
        if value is not None and not isinstance(value, dict):
            raise ImproperlyConfigured(f'{var} must be an object in JSON, such as {{"name": ...}}')
        return value or {}

    def _json(self, var: str, kind: str) -> Any:
        text = self.str(var, default="").strip()
        if not text:
            return None
        try:
            return json.loads(text if text[0] in "[{" else Path(text).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            # Not the text itself: it may hold keys.
            reason = f"{error.msg}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else error
            raise ImproperlyConfigured(
                f"{var} is neither {kind} in JSON nor the name of a file with one: {reason}"
            ) from None

    def broker(self, var: str) -> str:
        """The address of a broker."""
        url: str = self.str(var)
        # Several may be given, for fail-over.
        if not all((address := _split(part)) and address.scheme for part in url.split(";")):
            raise ImproperlyConfigured(
                f"{var} is not the address of a broker; write redis://HOST:PORT/NUMBER, "
                "or leave it out to use the embedded one"
            )
        return url


def _split(url: str) -> Any:
    """The parts of an address, or None when it has no scheme or a port that is no number."""
    try:
        address = urlsplit(url)
        address.port  # noqa: B018  raises
    except ValueError:
        return None
    return address if "://" in url else None


def check_var(var: Path) -> Path:
    """The folder that WORKBENCH_VAR names, made or to be made; ImproperlyConfigured when it is something else."""
    if var.exists() and not var.is_dir():
        raise ImproperlyConfigured(f"{var} is a file; WORKBENCH_VAR must name a folder, made or to be made")
    return var
