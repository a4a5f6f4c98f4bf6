"""The harness in git, its file format, and the runtime that runs it.

A plain library: it knows nothing of Django, Celery, the loop's records or any vendor's client.
"""
