"""Readers of what users have: one module per format, each turning its records into `ports.Record`.

A new format is a module with `is_<format>(item)` and `read_item(item, ...)`, and one row in `detect.READERS`.
"""
