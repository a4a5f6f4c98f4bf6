"""Who a commit is by: a person or a part of the system by name, or the model that drafted it."""

import re

from evolution.actors import Actor
from harness_repo.git.objects import Author

# Reserved by RFC 2606, so that nobody can own the address.
_DOMAIN = "workbench.invalid"
_MODELS = "model.invalid"


def author_of(actor: Actor) -> Author:
    """Return the actor as a commit's author."""
    return Author(actor.name, actor.email or f"{_local_part(actor.name)}@{_DOMAIN}")


def model_author(model: str) -> Author:
    """Return a model as a commit's author; its address is at the domain `model.invalid`."""
    return Author(model, f"{_local_part(model)}@{_MODELS}")


def is_model(email: str) -> bool:
    """Whether a commit's author is a model that drafted it."""
    return email.endswith(f"@{_MODELS}")


def _local_part(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unknown"
