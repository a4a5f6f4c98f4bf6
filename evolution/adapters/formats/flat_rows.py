"""JSON objects that are rows of a table: flat, and with usual names, such as {"question", "answer"}.

A record is an object. What `csv_table` says of columns holds for its keys.
"""

from typing import Any

from evolution.adapters.formats import csv_table
from evolution.adapters.formats.items import Where, each
from evolution.adapters.formats.mapping import guess_mapping
from evolution.ports import Record

NAME = SOURCE = "rows"


def fits(value: Any) -> bool:
    """Say whether a JSON value is flat, and has a key whose name is a request's or a conversation's."""
    if not isinstance(value, dict) or any(isinstance(part, dict | list) for part in value.values()):
        return False
    guess = guess_mapping(list(value))
    return any(isinstance(value.get(guess.get(name, "")), str) for name in ("request", "messages"))


def read_item(item: dict[str, Any], where: Where, line: int) -> Record:
    """Turn an object into a record; raises RecordProblem."""
    return csv_table.read_item({"source": SOURCE, **item}, where, line)


read = each(read_item)
