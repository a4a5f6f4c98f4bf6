"""Which models people can choose from when a question of the loop is asked again."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from evolution.adapters.chat import configured_endpoints, model_name, rehearsal_name
from evolution.errors import LoopError


@dataclass(frozen=True)
class ModelChoice:
    """What can be asked in a role."""

    # that of the role first
    names: tuple[str, ...] = ()
    # whether a server takes whatever name it is given
    is_open: bool = False


def list_models(role: str) -> ModelChoice:
    """The models that the settings name for a role; none where they can't be read."""
    own = model_name(role)
    names = (own,) if own else ()
    try:
        serving = [endpoint for endpoint in configured_endpoints() if endpoint.serves(role)]
    except LoopError:
        return ModelChoice(names)
    there = [endpoint.model_for(role) for endpoint in serving]
    return ModelChoice(tuple(dict.fromkeys([*names, *filter(None, there)])), is_open="" in there)


def check_model(role: str, name: str) -> None:
    """Raises LoopError where no endpoint can be asked for a model of this name; "" is that of the role."""
    choice = list_models(role)
    # A server that takes any name has no rehearsal model either.
    is_taken = choice.is_open and name != rehearsal_name(role)
    if not name or is_taken or name in choice.names:
        return
    known = ", ".join(choice.names) or "-"
    text = _("no endpoint can be asked for %(model)s; those that can be asked are: %(known)s")
    raise LoopError(text % {"model": name, "known": known})
