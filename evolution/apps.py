"""The Django app that holds the loop's records."""

from django.apps import AppConfig


class EvolutionConfig(AppConfig):
    """Registers the loop's models."""

    name = "evolution"
    default_auto_field = "django.db.models.BigAutoField"
