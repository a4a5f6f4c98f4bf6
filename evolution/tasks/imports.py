"""Imports of uploads by Celery, and the cleaning of what uploads leave behind."""

import logging
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.utils import timezone

from evolution.actors import Actor, Role
from evolution.adapters import staged_files
from evolution.adapters.formats.detect import FileRecords
from evolution.errors import LoopError
from evolution.loop.imports import note_left_out, perform_import, read_options
from evolution.loop.jobs import job_progress
from evolution.loop.masking import current_masker
from evolution.models import ImportRun, Job
from evolution.states import ImportState
from evolution.tasks.assigning import request_assignment

logger = logging.getLogger(__name__)

# An upload that nobody has said how to read, and the files of an import that failed and nobody went on with.
PREVIEW_AGE = timedelta(days=1)
FAILED_AGE = timedelta(days=7)


def import_staged(job: Job) -> tuple[dict[str, Any], str]:
    """Do what is left of an import of uploads, and delete them."""
    run = ImportRun.objects.select_related("harness", "source").get(pk=job.target_id or 0)

    def tell(run: ImportRun) -> None:
        job_progress(job, run.read, 0, "")

    # The action has checked the role.
    actor, masker = Actor(job.created_by, Role.DEVELOPER), current_masker()
    options = read_options(run.options)
    left_out: list[str] = []

    def open_files() -> Iterator[FileRecords]:
        left_out.clear()
        return staged_files.open_staged(run.files, options.format, options.mapping, left_out.append)

    try:
        perform_import(actor, run, open_files, masker, tell)
        note_left_out(run, left_out, masker)
    except LoopError:
        raise
    except Exception as error:
        logger.exception("%s failed", run)
        raise LoopError(masker.mask_text(f"{type(error).__name__}: {error}")) from error
    finally:
        request_assignment(run.harness)
    staged_files.remove(run.files)
    return {"import": run.pk, "new": run.new}, ""


def remove_leftovers() -> None:
    """Delete uploads that nobody will import any more, and folders that belong to no import; called by the sweep."""
    folders = {path.name: path for path in staged_files.list_folders()}
    if not folders:
        return
    now = timezone.now()
    stale = ImportRun.objects.filter(state=ImportState.PREVIEW, created_at__lt=now - PREVIEW_AGE)
    for run in stale:
        staged_files.remove(run.files)
        run.delete()
    waiting = ImportRun.objects.exclude(state=ImportState.FINISHED).exclude(
        state=ImportState.FAILED, created_at__lt=now - FAILED_AGE
    )
    wanted = {str(file.get("path", "")).split("/")[0] for run in waiting.only("files") for file in run.files}
    for name, path in folders.items():
        # An upload's folder is there before its import is.
        if name not in wanted and _age(path) > PREVIEW_AGE.total_seconds():
            shutil.rmtree(path, ignore_errors=True)


def _age(path: Any) -> float:
    try:
        return float(time.time() - path.stat().st_mtime)
    except OSError:
        return 0.0
