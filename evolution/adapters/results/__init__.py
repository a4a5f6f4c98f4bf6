"""Readers of results that other programs made: one module per format, each giving a `ports.MeasuredRun`.

A new format is a module with `fits(document)` and `read(document, wanted)`, and one row in `detect.READERS`. A bad
record costs its own result alone, and is named with its place.
"""
