"""Finds out a file's format and reads its records one by one; a bad record never costs the others."""

import codecs
import json
from collections.abc import Callable, Iterator
from itertools import count, repeat
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from evolution.adapters.formats import jsonl, tau_bench
from evolution.adapters.formats.values import DECODER, RecordProblem, clean, escape
from evolution.errors import BrokenInput
from evolution.ports import Record, Rejected


class Reader(NamedTuple):
    """One format: does a record look like it, and the record it amounts to."""

    fits: Callable[[dict[str, Any]], bool]
    read: Callable[[dict[str, Any], str, int], Record]


READERS = {
    "tau-bench": Reader(tau_bench.is_tau_bench, tau_bench.read_item),
    "jsonl": Reader(jsonl.is_jsonl, jsonl.read_item),
}
FORMATS = ("auto", *READERS)

# An item of a file with the line it starts on; a RecordProblem stands for what could not be parsed.
Item = tuple[int, Any]


def read_file(path: Path, fmt: str = "auto") -> Iterator[Record | Rejected]:
    """Read a file's records; raises BrokenInput when it can't be read at all."""
    name = escape(str(path))
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise BrokenInput(_("%(name)s is a folder; name the files in it") % {"name": name}) from None
    except OSError as error:
        what = {"name": name, "problem": error.strerror}
        raise BrokenInput(_("%(name)s can't be opened: %(problem)s") % what) from None
    return read_records(data, show_name(path), fmt)


def show_name(path: Path) -> str:
    """A file's name as people can read and PostgreSQL can store it: what is not UTF-8 in it is escaped."""
    return escape(path.name)


def read_records(data: bytes, name: str, fmt: str = "auto") -> Iterator[Record | Rejected]:
    """Read the records of a file's content; `name` is the file's name, for ids and messages.

    Raises BrokenInput, with file, line and what to do, when the content is in none of the formats.
    """
    if fmt not in FORMATS:
        what = {"format": fmt, "known": ", ".join(FORMATS)}
        raise BrokenInput(_("there is no format %(format)s; known are %(known)s") % what)
    items = list(_items(data, name))
    reader = _choose_reader(items, name, fmt)
    stem = Path(name).stem
    # Several records on a line are told apart by their number.
    are_alone = len({line for line, _item in items}) == len(items)
    numbers = repeat(0) if are_alone else count(1)
    return (
        _read_item(reader, item, stem, line, number)
        for number, (line, item) in zip(numbers, items, strict=False)
    )


def _read_item(reader: Reader, item: Any, stem: str, line: int, number: int) -> Record | Rejected:
    try:
        return reader.read(_checked(item), stem, line)
    except RecordProblem as problem:
        return Rejected(line, str(problem), number)


def _checked(item: Any) -> dict[str, Any]:
    if isinstance(item, RecordProblem):
        raise item
    if not isinstance(item, dict):
        raise RecordProblem(_("a record must be an object"))
    cleaned: dict[str, Any] = clean(item)
    return cleaned


def _choose_reader(items: list[Item], name: str, fmt: str) -> Reader:
    if fmt != "auto":
        return READERS[fmt]
    objects = [(line, item) for line, item in items if isinstance(item, dict)]
    for _number, item in objects:
        for reader in READERS.values():
            if reader.fits(item):
                return reader
    if not items:
        return READERS["jsonl"]
    line = (objects or items)[0][0]
    text = _(
        "%(name)s, line %(line)d: no known format has such records; tau-bench records have `traj` and `reward`, "
        "ours `request`, `messages` or `trajectory` (see import_cases --help)"
    )
    raise BrokenInput(text % {"name": name, "line": line})


def _items(data: bytes, name: str) -> Iterator[Item]:
    """A file that starts with a bracket is one JSON list; every other one has an object per line."""
    data = _as_utf8(data, name)
    start = data.lstrip()[:1]
    if not start:
        raise BrokenInput(
            _("%(name)s is empty; expected a JSON list, or one JSON object per line") % {"name": name}
        )
    return _list_items(data, name) if start == b"[" else _line_items(data, name)


def _as_utf8(data: bytes, name: str) -> bytes:
    """Drop the byte order mark; Windows tools write UTF-16."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16").encode("utf-8")
        except UnicodeError:
            raise BrokenInput(_("%(name)s: broken UTF-16; save it as UTF-8") % {"name": name}) from None
    return data.removeprefix(codecs.BOM_UTF8)


def _list_items(data: bytes, name: str) -> Iterator[Item]:
    """Walk the list item by item, so that each has its line."""
    text = _decode(data, name)
    position, line, counted = text.index("[") + 1, 1, 0
    separator = ""
    while True:
        position = _skip_space(text, position)
        line += text.count("\n", counted, position)
        counted = position
        if text[position : position + 1] == "]" and separator != ",":
            break
        try:
            item, position = DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise BrokenInput(_syntax_problem(name, error)) from None
        except RecursionError:
            text = _("%(name)s, line %(line)d: nested too deep to be read; take that record out")
            raise BrokenInput(text % {"name": name, "line": line}) from None
        yield line, item
        position = _skip_space(text, position)
        separator = text[position : position + 1]
        if separator not in {",", "]"} or not separator:
            raise BrokenInput(_list_problem(text, position, name))
        position += separator == ","
    if text[position + 1 :].strip():
        raise BrokenInput(_list_problem(text, _skip_space(text, position + 1), name))


def _skip_space(text: str, position: int) -> int:
    while text[position : position + 1] in {" ", "\t", "\n", "\r"}:
        position += 1
    return position


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text = _("%(name)s, line %(line)d: not UTF-8; save the file as UTF-8 and import it again")
        raise BrokenInput(text % {"name": name, "line": line}) from None


def _syntax_problem(name: str, error: json.JSONDecodeError) -> str:
    text = _(
        "%(name)s, line %(line)d, column %(column)d: broken JSON (%(problem)s); nothing was imported. "
        "Is the file complete? Export it again, or mend that line"
    )
    return text % {"name": name, "line": error.lineno, "column": error.colno, "problem": error.msg}


def _list_problem(text: str, position: int, name: str) -> str:
    what = (
        _("the file ends inside the list")
        if position >= len(text)
        else _("expected a comma or the end of the list")
    )
    return _syntax_problem(name, json.JSONDecodeError(what, text, position))


def _line_items(data: bytes, name: str) -> Iterator[Item]:
    """One object per line, unless the whole file is one object laid out over several."""
    items = [(number, _line_item(line)) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    if not isinstance(items[0][1], dict) and isinstance(whole := _line_item(data), dict):
        yield items[0][0], whole
        return
    problems = [(number, item) for number, item in items if isinstance(item, RecordProblem)]
    # A lone number or text on a line is a piece of something else.
    if problems and not any(isinstance(item, dict) for _number, item in items):
        number, problem = problems[0]
        text = _("%(name)s, line %(line)d: %(problem)s; expected a JSON list, or one JSON object per line")
        raise BrokenInput(text % {"name": name, "line": number, "problem": problem})
    yield from items


def _line_item(line: bytes) -> Any:
    try:
        return DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError:
        return RecordProblem(_("not UTF-8"))
    except json.JSONDecodeError as error:
        what = {"column": error.colno, "problem": error.msg}
        return RecordProblem(_("broken JSON at column %(column)d (%(problem)s)") % what)
    except RecursionError:
        return RecordProblem(_("nested too deep to be read"))
