"""The files of a version of a harness, read only, with what is wrong in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from evolution.loop.repositories import open_repository
from harness_repo.format.harness import CONFIG, read_harness
from harness_repo.format.problems import Problem
from harness_repo.format.textfile import MAX_FILE_BYTES, read_text
from harness_repo.git.errors import HarnessRepoError
from harness_repo.snapshot import Snapshot
from workbench.access import Request, get_harness_for
from workbench.agent_panel import build_panel
from workbench.parameters import read_number
from workbench.rendering import render_page

# Seen at once, and unfolded.
_FIRST_PROBLEMS = 8
_SHOWN_PROBLEMS = 200
# Lines of a file on one page.
_PAGE_LINES = 1000
# A tree of so many entries is shown unfolded.
_FEW_ENTRIES = 60


@dataclass(frozen=True)
class Entry:
    """One line of the list of files."""

    # As it is shown and asked for: bytes that are no UTF-8 are U+FFFD.
    name: str
    # "file"; "link", a symbolic link, which is not followed; "submodule", of which only the commit is known.
    kind: str
    # Where a link leads, or the commit of a submodule.
    target: str = ""


@dataclass(frozen=True)
class Group:
    """The entries below one folder of the root; the root's own have the name ""."""

    name: str
    entries: list[Entry]
    is_open: bool


@require_safe
def harness_files(request: Request, harness: str) -> HttpResponse:
    """Show a version (?ref=, else what is live) and one of its files (?path=)."""
    record = get_harness_for(request, harness)
    ref = request.GET.get("ref") or "main"
    context: dict[str, object] = {"ref": ref}
    try:
        repository = open_repository(record)
        commit = repository.resolve(ref)
        snapshot = repository.snapshot(commit)
        context |= {"commit": commit, "log": repository.log(commit, 30)}
    except HarnessRepoError as error:
        messages.error(request, str(error))
        return render_page(request, "files.html", context, record)
    read = read_harness(snapshot)
    problems = _in_order(read.problems)
    entries = _list_entries(snapshot)
    chosen = _choose(snapshot, entries, request.GET.get("path"))
    context |= {
        "version": read,
        "agent": build_panel(record, read),
        "problem_count": len(problems),
        "error_count": sum(problem.is_error for problem in problems),
        "problems": problems[:_SHOWN_PROBLEMS],
        "first_problems": problems[:_FIRST_PROBLEMS],
        "more_count": len(problems) - _FIRST_PROBLEMS,
        "more_problems": problems[_FIRST_PROBLEMS:_SHOWN_PROBLEMS],
        "entry_count": len(entries),
        "groups": _group(entries, str(chosen["path"])),
    }
    if "lines" in chosen:
        chosen |= _cut_page(chosen["lines"], read_number(request.GET.get("line", "")) or 1)
    return render_page(request, "files.html", context | chosen, record)


def _in_order(problems: Sequence[Problem]) -> list[Problem]:
    """Errors first, with nothing in them that a page could not hold."""
    shown = [
        replace(problem, path=_showable(problem.path), message=_showable(problem.message))
        for problem in problems
    ]
    return sorted(shown, key=lambda problem: (not problem.is_error, problem.path, problem.line))


def _list_entries(snapshot: Snapshot) -> list[Entry]:
    entries = [Entry(_showable(path), "file") for path in snapshot.files]
    entries += [Entry(_showable(path), "link", _showable(to)) for path, to in snapshot.links.items()]
    entries += [Entry(_showable(path), "submodule", sha) for path, sha in snapshot.submodules.items()]
    return sorted(entries, key=lambda entry: entry.name)


def _group(entries: Sequence[Entry], path: str) -> list[Group]:
    """Entries by their first folder, the root's own first; the folder of `path` is open, a small tree's are all."""
    folders: dict[str, list[Entry]] = {}
    for entry in entries:
        folder, slash, _rest = entry.name.partition("/")
        folders.setdefault(folder if slash else "", []).append(entry)
    is_small = len(entries) <= _FEW_ENTRIES
    here = path.partition("/")[0]
    return [Group(name, found, is_small or name == here) for name, found in sorted(folders.items())]


def _choose(snapshot: Snapshot, listed: Sequence[Entry], asked: str | None) -> dict[str, Any]:
    """The file that was asked for; else harness.yaml, or what there is where an agent has none."""
    names = {_showable(path): path for path in snapshot.files}
    path = asked or (CONFIG if CONFIG in names else min(names, default=CONFIG))
    entries = {entry.name: entry for entry in listed}
    chosen: dict[str, Any] = {"path": path, "entry": entries.get(path)}
    data = snapshot.files.get(names.get(path, ""))
    if data is None:
        return chosen
    text, kind = _read(path, data)
    chosen |= {"size": len(data), "most_size": MAX_FILE_BYTES, "kind": kind}
    return chosen if text is None else {**chosen, "lines": _split_lines(text)}


def _read(path: str, data: bytes) -> tuple[str | None, str]:
    """The text to show, if any, and what is to be said of it: too_large, binary, wide, not_utf8 or nothing."""
    if len(data) > MAX_FILE_BYTES:
        return None, "too_large"
    if b"\0" in data:
        # As the harness is read: text of two or four bytes a character is decoded, anything else is no text.
        text, _problems = read_text(path, data)
        return text, "binary" if text is None else "wide"
    try:
        return data.decode(), ""
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), "not_utf8"


def _cut_page(lines: list[str], wanted: int) -> dict[str, object]:
    """The page of a long file that the wanted line is on, with the lines that the pages beside it begin with."""
    start = min(wanted, max(len(lines), 1)) - 1
    start -= start % _PAGE_LINES
    end = min(start + _PAGE_LINES, len(lines))
    return {
        "lines": list(enumerate(lines[start:end], start + 1)),
        "line_count": len(lines),
        "is_cut": end - start < len(lines),
        "first_line": start + 1,
        "last_line": end,
        "previous_line": start + 1 - _PAGE_LINES if start else None,
        "next_line": end + 1 if end < len(lines) else None,
    }


def _split_lines(text: str) -> list[str]:
    """The lines as git and our problems count them: other characters that break lines are marked by the page."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _showable(text: str) -> str:
    """A path as a page can hold it: git's paths are bytes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
