"""Beside the stages: one writer at a time for what people decide about a harness.

Everybody takes the harness's row first, so nobody waits for somebody who waits for them.
"""

from evolution.models import Harness, Proposal, Step


def lock_harness(harness: Harness) -> None:
    """Make others that decide about this harness, or move its main, wait; needs a transaction."""
    Harness.objects.select_for_update(no_key=True).get(pk=harness.pk)


def lock_record(record: Step | Proposal) -> None:
    """Lock the record's harness, then read the record again: what was loaded before may be out of date."""
    lock_harness(record.harness)
    record.refresh_from_db()
