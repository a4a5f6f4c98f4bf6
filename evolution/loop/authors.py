"""Who a commit is by: a person or a part of the system by name, or the model that drafted it."""

import re

from evolution.actors import Actor
from harness_repo.git.commitinfo import CommitInfo
from harness_repo.git.messages import read_trailers
from harness_repo.git.objects import Author

# The trailer by which git's hosts know that a commit has several authors.
CO_AUTHOR = "Co-authored-by"
_NAMED = re.compile(r"(?P<name>[^<>]*?)\s*<(?P<email>[^<>]*)>")

# Reserved by RFC 2606, so that nobody can own the address.
_DOMAIN = "workbench.invalid"
_MODELS = "model.invalid"


def author_of(actor: Actor) -> Author:
    """Return the actor as a commit's author."""
    return Author(actor.name, actor.email or f"{_local_part(actor.name)}@{_DOMAIN}")


def model_author(model: str) -> Author:
    """Return a model as a commit's author; its address is at the domain `model.invalid`."""
    return Author(model, f"{_local_part(model)}@{_MODELS}")


def sign_as_co_author(author: Author) -> str:
    """What the trailer of a co-author says."""
    return f"{author.name} <{author.email}>"


def list_authors(commit: CommitInfo) -> list[Author]:
    """Whoever a commit says it was written by, its co-authors too: as git was told, which anybody can tell it."""
    found = [Author(commit.author, commit.email)]
    for key, value in read_trailers(commit.message):
        if key.casefold() == CO_AUTHOR.casefold() and (match := _NAMED.fullmatch(value.strip())):
            found.append(Author(match["name"], match["email"]))
    return found


def _local_part(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unknown"
