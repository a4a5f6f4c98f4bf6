"""Celery's way into the loop: tasks take ids, build the adapters and call it. Importing this registers them all."""

from evolution.tasks import branches, evaluations, jobs, search, sweep, traces

__all__ = ["branches", "evaluations", "jobs", "search", "sweep", "traces"]
