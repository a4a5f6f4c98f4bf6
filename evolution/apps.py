"""The Django app that holds the loop's records."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured


class EvolutionConfig(AppConfig):
    """Registers the loop's models."""

    name = "evolution"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the settings checked before a server or a command starts."""
        checks.register(check_endpoints)
        checks.register(check_tool_grants)
        checks.register(check_prices)


def check_endpoints(**_: Any) -> list[checks.CheckMessage]:
    """An error when LLM_ENDPOINTS is set and can't be used."""
    if not settings.LLM_ENDPOINTS:
        return []
    # The models' package takes a while to import, and most commands need none.
    from evolution.adapters.chat import configured_endpoints  # noqa: PLC0415
    from evolution.errors import LoopError  # noqa: PLC0415

    try:
        configured_endpoints()
    except LoopError as failure:
        return [checks.Error(str(failure), id="evolution.E001")]
    return []


def check_tool_grants(**_: Any) -> list[checks.CheckMessage]:
    """An error when one of the TOOL_* settings is given and can't be used."""
    if not (settings.TOOL_HOSTS or settings.TOOL_COMMANDS or settings.TOOL_SECRETS):
        return []
    # As above: it imports the client of the tools.
    from evolution.adapters.tool_access import build_tool_access  # noqa: PLC0415

    try:
        build_tool_access()
    except ImproperlyConfigured as failure:
        return [checks.Error(str(failure), id="evolution.E002")]
    return []


def check_prices(**_: Any) -> list[checks.CheckMessage]:
    """An error when MODEL_PRICES is set and can't be used."""
    if not settings.MODEL_PRICES:
        return []
    # As above: it imports pydantic.
    from evolution.loop.prices import read_prices  # noqa: PLC0415

    try:
        read_prices(settings.MODEL_PRICES)
    except ValueError as failure:
        return [checks.Error(f"MODEL_PRICES can't be used: {failure}", id="evolution.E003")]
    return []
