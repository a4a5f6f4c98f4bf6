"""Finds out what a file of results is, by its content, and reads it."""

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from evolution.adapters.formats.values import MAX_DEPTH, RecordProblem, escape
from evolution.adapters.results import inspect_log, plain, promptfoo, tau2_bench, tau_bench
from evolution.adapters.results.eval_archive import open_log
from evolution.adapters.results.wanted import Wanted
from evolution.errors import BrokenInput
from evolution.ports import MeasuredRun

_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


class Reader(NamedTuple):
    """One format whose file is a JSON value: does it look like it, and the run that it amounts to."""

    fits: Callable[[Any], bool]
    read: Callable[[Any, Wanted], MeasuredRun]


READERS = {
    tau2_bench.FORMAT: Reader(tau2_bench.fits, tau2_bench.read),
    tau_bench.FORMAT: Reader(tau_bench.fits, tau_bench.read),
    inspect_log.FORMAT: Reader(inspect_log.fits, inspect_log.read),
    promptfoo.FORMAT: Reader(promptfoo.fits, promptfoo.read),
}
FORMATS = (*READERS, plain.FORMAT)


class Source(NamedTuple):
    """A file's content, and what it is recognised by."""

    name: str
    data: bytes
    # the parts of a run that is kept in a folder, in order
    parts: tuple[bytes, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 over all of it."""
        summed = hashlib.sha256(self.data)
        for part in self.parts:
            summed.update(hashlib.sha256(part).digest())
        return summed.hexdigest()


def open_source(path: Path) -> Source:
    """The content of a file, or of a folder in which tau2-bench kept a run. BrokenInput when it can't be read."""
    try:
        if path.is_dir():
            return _open_folder(path)
        return Source(escape(path.name), path.read_bytes())
    except OSError as error:
        what = {"name": escape(str(path)), "problem": error.strerror}
        raise BrokenInput(_("%(name)s can't be opened: %(problem)s") % what) from None


def _open_folder(path: Path) -> Source:
    main = path / "results.json"
    if not main.is_file():
        text = _("%(name)s is a folder without a results.json; name the file in it")
        raise BrokenInput(text % {"name": escape(str(path))})
    parts = tuple(part.read_bytes() for part in sorted((path / "simulations").glob("*.json")))
    return Source(escape(path.name), main.read_bytes(), parts)


def read_source(source: Source, wanted: Wanted) -> MeasuredRun:
    """Read a file's results. BrokenInput, with place and reason, when it is in none of the formats or broken."""
    wanted = wanted if wanted.name else Wanted(**{**vars(wanted), "name": source.name})
    if source.data[:2] == b"PK":
        return _read_archive(source, wanted)
    text = _decode(source)
    whole, failure = _parse(text)
    if failure is None:
        if source.parts and isinstance(whole, dict):
            whole["simulations"] = [_read_part(part) for part in source.parts]
        for reader in READERS.values():
            if reader.fits(whole):
                return reader.read(whole, wanted)
    return _read_lines(source.name, text, whole, failure, wanted)


def _read_lines(
    name: str, text: str, whole: Any, failure: json.JSONDecodeError | None, wanted: Wanted
) -> MeasuredRun:
    """The file as JSON Lines, which may as well be a list in one JSON value."""
    if failure is None:
        lines = list(enumerate(whole if isinstance(whole, list) else [whole], 1))
    else:
        lines = [
            (number, _parse_line(line)) for number, line in enumerate(text.split("\n"), 1) if line.strip()
        ]
    records = [record for _number, record in lines]
    if plain.fits(records):
        return plain.read(lines, wanted)
    if rows := [record for record in records if isinstance(record, dict) and "success" in record]:
        # What promptfoo writes as .jsonl: its rows alone.
        return promptfoo.read({"results": rows}, wanted)
    if failure is not None:
        what = {"name": name, "line": failure.lineno, "column": failure.colno, "problem": failure.msg}
        broken = _("%(name)s, line %(line)d, column %(column)d: broken JSON (%(problem)s)")
        raise BrokenInput(broken % what) from None
    unknown = _("%(name)s is in none of the known formats: %(known)s (see import_results --help)")
    raise BrokenInput(unknown % {"name": name, "known": ", ".join(FORMATS)})


def _decode(source: Source) -> str:
    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.data.count(b"\n", 0, error.start) + 1
        what = {"name": source.name, "line": line}
        raise BrokenInput(_("%(name)s, line %(line)d: not UTF-8") % what) from None
    if not text.strip():
        raise BrokenInput(_("%(name)s is empty") % {"name": source.name})
    return text


def _parse(text: str | bytes) -> tuple[Any, json.JSONDecodeError | None]:
    """The JSON value of a whole text, or what is wrong with it. NaN is read, and no score."""
    try:
        value = json.loads(text)
        _check_depth(value)
    except json.JSONDecodeError as error:
        return None, error
    except (ValueError, RecursionError) as error:
        problem = str(error) if isinstance(error, ValueError) else _TOO_DEEP
        return None, json.JSONDecodeError(problem, "", 0)
    return value, None


def _check_depth(value: Any) -> None:
    """Raise ValueError for nesting that would exhaust the stack of whatever walks the value."""
    level = [value] if isinstance(value, dict | list) else []
    for _level in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _parse_line(line: str) -> Any:
    value, failure = _parse(line)
    if failure is None:
        return value
    what = {"column": failure.colno, "problem": failure.msg}
    return RecordProblem(_("broken JSON at column %(column)d (%(problem)s)") % what)


def _read_part(data: bytes) -> Any:
    """A part that can't be read stands for itself, so that it is named with its number."""
    value, failure = _parse(data)
    return value if failure is None else {}


def _read_archive(source: Source, wanted: Wanted) -> MeasuredRun:
    """An .eval log of Inspect."""
    with open_log(io.BytesIO(source.data), source.name, _parse_member) as (header, samples):
        return inspect_log.read_samples(header, samples, wanted)


def _parse_member(data: bytes) -> Any:
    value, failure = _parse(data)
    if failure is not None:
        raise ValueError(failure.msg)
    return value
