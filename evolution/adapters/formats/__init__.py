"""Readers of what users have: one module per format, each turning its records into `ports.Record`.

A new format is a module with `NAME`, `fits(value)` and `read(items, where)`, as `items` describes them, one entry in
`detect.READERS`, and one row in the README's table. On the way from a path to a record: `files` opens it, `json_items`
or `csv_table` takes it apart, `detect` finds the reader.
"""
