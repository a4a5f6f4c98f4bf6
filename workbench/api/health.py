"""Says whether this process can reach its database and broker; needs no sign-in."""

from celery import current_app
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError


@login_not_required
@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    """200 while the process serves; the body says what it can reach."""
    return JsonResponse({"database": _database_state(), "broker": _broker_state()})


def _database_state() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "unreachable"
    return "ok"


def _broker_state() -> str:
    try:
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=1, interval_start=0, interval_max=0)
    except (OperationalError, OSError):
        return "unreachable"
    return "ok"
