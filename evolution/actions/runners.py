"""What operators do with the agent that is measured: our runtime, a command, or an HTTP endpoint."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop.locks import lock_harness
from evolution.loop.runners import check_runner, check_secrets
from evolution.models import Harness
from evolution.states import HarnessKind
from evolution.transitions import record
from harness_repo.runtime.access import ToolAccess


@transaction.atomic
def set_runner(
    actor: Actor, harness: Harness, runner: Mapping[str, Any], access: ToolAccess | None = None
) -> dict[str, Any]:
    """Have evaluations from now on measure this agent ({} is our runtime); returns the choice in full.

    What is measured already stays, and is not comparable with what another agent scores. Raises LoopError, with
    `access` also for headers whose secrets are not there or may not go to the endpoint.
    """
    actor.require(Role.OPERATOR)
    if harness.kind != HarnessKind.AGENT:
        raise LoopError(
            _("%(harness)s is a judge; judges run in the workbench's runtime") % {"harness": harness}
        )
    chosen = check_runner(runner)
    if access is not None:
        check_secrets(chosen, access)
    lock_harness(harness)
    harness.refresh_from_db(fields=["runner"])
    if harness.runner != chosen:
        harness.runner = chosen
        harness.save(update_fields=["runner"])
        record(actor, "harness.runner_set", harness, runner=chosen)
    return chosen
