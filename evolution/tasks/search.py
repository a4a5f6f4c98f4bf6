"""What beat does for the search of the inbox: texts of new cases go into the index."""

from celery import shared_task

from evolution.loop.search_index import index_texts


@shared_task(name="evolution.index_texts")
def index_new_texts() -> None:
    """Index what waits; a while at a time, so that other work gets its turn."""
    index_texts(seconds=10.0)
