"""The Django project and the web face of the workbench; the loop itself is in `evolution`."""

from workbench.celery import app as celery_app

__all__ = ["celery_app"]
