"""Which endpoints serve the models, as the operator set them: LLM_BASE_URL for one, LLM_ENDPOINTS for several."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible server."""

    # Such as https://host/v1; "" is OpenAI's own.
    base_url: str
    api_key: str = field(default="", repr=False)
    # For people; the host where none is given.
    name: str = ""
    # Empty: every role.
    roles: frozenset[str] = frozenset()
    # Role -> what this server calls the model; "" is for every role without one of its own.
    models: Mapping[str, str] = field(default_factory=dict)
    # Calls that all processes together have under way here at most, and begin in any minute, and the tokens of these;
    # 0 is no limit.
    concurrency: int = 0
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    # Whether each repeat is sent a seed of its own.
    seed: bool = True
    # Of one call from beginning to end; of reaching the server; and without a byte from it, 0 as for the whole call.
    seconds: float = 60.0
    connect_seconds: float = 10.0
    read_seconds: float = 0.0

    def serves(self, role: str) -> bool:
        """Whether calls of a role may go here."""
        return not self.roles or role in self.roles

    def model_for(self, role: str) -> str:
        """What this server calls the role's model, or "" where nothing was said."""
        return self.models.get(role) or self.models.get("", "")

    @property
    def label(self) -> str:
        """The name that people read; never a user name or key that stands in the address."""
        address = urlsplit(self.base_url or "https://api.openai.com/v1")
        port = f":{address.port}" if address.port else ""
        return self.name or f"{address.hostname}{port}"


class _Entry(BaseModel):
    """One entry of LLM_ENDPOINTS."""

    model_config = ConfigDict(extra="forbid")

    base_url: str = Field(pattern=r"^https?://[^\s/]+")
    api_key: str = ""
    api_key_env: str = ""
    name: str = ""
    roles: list[str] = []
    model: str | dict[str, str] = ""
    concurrency: int = Field(0, ge=0)
    requests_per_minute: int = Field(0, ge=0)
    tokens_per_minute: int = Field(0, ge=0)
    seed: bool = True
    seconds: float | None = Field(None, gt=0)
    connect_seconds: float | None = Field(None, gt=0)
    read_seconds: float = Field(0, ge=0)


@dataclass(frozen=True)
class Times:
    """Seconds of a call and of reaching a server, for endpoints that state none of their own."""

    call: float = 60.0
    connect: float = 10.0


def read_endpoints(
    entries: Sequence[Any], roles: Sequence[str], times: Times | None = None
) -> tuple[Endpoint, ...]:
    """The endpoints of a decoded LLM_ENDPOINTS.

    Raises ValueError with the number of the entry and what is wrong with it, never with a key.
    """
    times = times or Times()
    return tuple(_read(entry, number, roles, times) for number, entry in enumerate(entries, start=1))


def _read(data: Any, number: int, roles: Sequence[str], times: Times) -> Endpoint:
    try:
        entry = _Entry.model_validate(data)
        endpoint = Endpoint(
            base_url=entry.base_url,
            api_key=_key(entry),
            name=entry.name,
            roles=frozenset(entry.roles),
            models=entry.model if isinstance(entry.model, dict) else {"": entry.model},
            concurrency=entry.concurrency,
            requests_per_minute=entry.requests_per_minute,
            tokens_per_minute=entry.tokens_per_minute,
            seed=entry.seed,
            seconds=entry.seconds or times.call,
            connect_seconds=entry.connect_seconds or times.connect,
            read_seconds=entry.read_seconds,
        )
        _check_roles({*endpoint.roles, *filter(None, endpoint.models)}, roles)
        endpoint.label  # noqa: B018  raises for a port that is no number
    except ValidationError as failure:
        raise ValueError(f"entry {number}: {_explain(failure)}") from None
    except ValueError as failure:
        raise ValueError(f"entry {number}: {failure}") from None
    return endpoint


def _key(entry: _Entry) -> str:
    """The key, from the variable that holds it or as written."""
    if not entry.api_key_env:
        return entry.api_key
    key = os.environ.get(entry.api_key_env, "")
    if not key:
        raise ValueError(f"api_key_env names {entry.api_key_env}, and no such variable is set")
    return key


def _check_roles(named: set[str], roles: Sequence[str]) -> None:
    unknown = sorted(named - set(roles))
    if unknown:
        raise ValueError(f"there is no role {', '.join(unknown)}; the roles are {', '.join(roles)}")


def _explain(failure: ValidationError) -> str:
    """What pydantic found, without the values: one of them may be a key."""
    errors = failure.errors(include_input=False, include_url=False)
    return "; ".join(f"{'.'.join(map(str, error['loc'])) or 'it'}: {_message(error)}" for error in errors)


def _message(error: ErrorDetails) -> str:
    if error["type"] == "extra_forbidden":
        return f"no such key; an entry has {', '.join(_Entry.model_fields)}"
    return error["msg"]
