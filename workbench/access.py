"""Who may see and do what: loads records for the signed-in person and turns the person into the loop's Actor."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django_htmx.middleware import HtmxDetails

from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import LoopError
from evolution.models import Harness
from evolution.queries import people
from harness_repo.git.errors import HarnessRepoError

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Record = TypeVar("Record", bound=Model)


class Request(HttpRequest):
    """A request as the middleware leaves it, for somebody signed in."""

    htmx: HtmxDetails
    workbench_actor: Actor


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in person with the role that they have for the harness of the address, else everywhere."""
    known: Actor | None = getattr(request, "workbench_actor", None)
    if known is None:
        known = people.find_actor(cast("User", request.user), _harness_name(request))
        request.workbench_actor = known  # type: ignore[attr-defined]  # read once per request
    return known


def _harness_name(request: HttpRequest) -> str:
    """The harness that the address is about; empty for pages of the installation."""
    match = request.resolver_match
    return str(match.kwargs.get("harness", "")) if match else ""


def get_harness_for(request: HttpRequest, name: str) -> Harness:
    """Load a harness that the person may see: every role may see every harness."""
    actor_of(request).require(Role.VIEWER)
    return get_object_or_404(Harness.objects.select_related("judge"), name=name)


def get_for(
    request: HttpRequest, harness: str, records: type[Record] | QuerySet[Record], **lookup: Any
) -> Record:
    """Load a record of a harness that the person may see, or answer 404."""
    return get_object_or_404(records, harness=get_harness_for(request, harness), **lookup)


def told(request: HttpRequest, success: str = "") -> "Telling":
    """Tell the person how the action in the block went: `success`, or the message of the error that stopped it."""
    return Telling(request, success)


class Telling:
    """The context manager behind `told`; after an error of the loop the code below the block goes on."""

    def __init__(self, request: HttpRequest, success: str) -> None:
        self.request = request
        self.success = success

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        """Swallow what people can act on, turn NotAllowed into the 403 page, let everything else through."""
        if isinstance(error, NotAllowed):
            raise PermissionDenied(str(error)) from error
        if isinstance(error, LoopError | HarnessRepoError):
            messages.error(self.request, str(error))
            return True
        if error is None and self.success:
            messages.success(self.request, self.success)
        return False
