"""A diff on a page: how people want to see it, what is shown at once, and the parts that they ask for afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRefresh

from evolution.models import Harness
from harness_repo.git.diffs import FileDiff, parse_diff
from harness_repo.git.repository import HarnessRepository
from workbench.access import Request
from workbench.diff_view import (
    FileView,
    Layout,
    Look,
    Side,
    Sources,
    find_row,
    view_diff,
    view_file,
    view_gap,
    view_line,
)
from workbench.parameters import read_number
from workbench.rendering import render_page

# What a session remembers of the choices.
_REMEMBERED = "diff"


@dataclass(frozen=True)
class Change:
    """Two versions with what differs, and where parts of it are to be had."""

    files: list[FileDiff]
    sources: Sources
    head: str
    address: str = ""
    # Where a form for a note on a line is to be had; empty where nobody may write one.
    comment_address: str = ""
    notes: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class DiffPage:
    """What parts/diff_files.html shows."""

    files: list[FileView]
    look: Look
    comment_address: str = ""

    @property
    def added(self) -> int:
        """Lines put in."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """Lines taken out."""
        return sum(file.removed for file in self.files)

    @property
    def hidden_space(self) -> int:
        """Lines whose change of white space is not shown."""
        return sum(file.hidden_space for file in self.files)

    @property
    def later(self) -> int:
        """Files of which nothing is shown yet."""
        return sum(file.is_deferred for file in self.files)

    def find_row(self, anchor: str) -> object | None:
        """The row or the file that has this id on the page."""
        return find_row(self.files, anchor)


def read_look(request: HttpRequest) -> Look:
    """The layout (?layout=) and whether changes of white space are hidden (?space=hide); both are remembered."""
    kept = request.session.get(_REMEMBERED)
    kept = kept if isinstance(kept, dict) else {}
    chosen = {name: request.GET.get(name) or kept.get(name, "") for name in ("layout", "space")}
    layout = _read_layout(chosen["layout"])
    hide_space = chosen["space"] == "hide"
    remembered = {"layout": layout, "space": "hide" if hide_space else ""}
    if remembered != kept and ("layout" in request.GET or "space" in request.GET):
        request.session[_REMEMBERED] = remembered
    return Look(layout, hide_space)


def _read_layout(name: str) -> Layout:
    layouts: tuple[Layout, ...] = get_args(Layout)
    return next((layout for layout in layouts if layout == name), "unified")


def read_change(
    repository: HarnessRepository,
    base: str,
    head: str,
    *,
    address: str = "",
    comment_address: str = "",
    notes: Mapping[str, Any] | None = None,
    sources: Sources | None = None,
) -> Change:
    """What differs between two versions. Raises HarnessRepoError, and ValueError for a diff that can't be read."""
    files = parse_diff(repository.diff(base, head))
    given = sources or Sources(repository.files(base), repository.files(head))
    return Change(files, given, head, address, comment_address, notes)


def show_change(request: HttpRequest, change: Change, *, first: int = 1) -> DiffPage:
    """Prepare a change for parts/diff_files.html, as the person wants to see it; files are numbered from `first`."""
    look = read_look(request)
    files = view_diff(
        change.files,
        change.sources,
        layout=look.layout,
        hide_space=look.hide_space,
        notes=change.notes,
        first=first,
    )
    return DiffPage([_address(file, change, look) for file in files], look, change.comment_address)


def show_diff(
    request: HttpRequest,
    repository: HarnessRepository,
    base: str,
    head: str,
    *,
    address: str = "",
    comment_address: str = "",
    notes: Mapping[str, Any] | None = None,
    sources: Sources | None = None,
    first: int = 1,
) -> DiffPage:
    """`read_change` and `show_change` in one."""
    change = read_change(
        repository,
        base,
        head,
        address=address,
        comment_address=comment_address,
        notes=notes,
        sources=sources,
    )
    return show_change(request, change, first=first)


def _address(file: FileView, change: Change, look: Look) -> FileView:
    if not change.address:
        return file
    query = {
        "path": file.path,
        "layout": look.layout,
        "space": "hide" if look.hide_space else "show",
        "head": change.head,
    }
    mark = "&" if "?" in change.address else "?"
    return replace(file, address=f"{change.address}{mark}{urlencode(query, errors='replace')}")


def answer_file(
    request: Request, change: Change, harness: Harness, around: Mapping[str, Any] | None = None
) -> HttpResponse:
    """One file of a change (?path=): the part that htmx asks for, or the file on a page of its own.

    ?gap=FIRST-LAST&show=up|down unfolds lines that did not change, ?start=ROW goes on where the page stopped,
    ?side=&line= gives a long line as a whole. 404 for what is not in the change; a page that shows another version
    than there is now is loaded again.
    """
    look = _read_shown_look(request)
    if request.htmx and request.GET.get("head", change.head) != change.head:
        return HttpResponseClientRefresh()
    number = _find_number(change.files, request.GET.get("path", ""))
    if "line" in request.GET:
        return _answer_line(request, change, harness, number, around or {})
    if request.htmx and "gap" in request.GET:
        return _answer_gap(request, change, look, number)
    start = read_number(request.GET.get("start", "")) or 0
    if not request.htmx:
        look = replace(look, whole="gap" in request.GET or "whole" in request.GET)
    file = view_file(change.files, number, change.sources, look, start=start, notes=change.notes)
    file = _address(file, change, look)
    context = {"file": file, "diff": DiffPage([file], look, change.comment_address)}
    if not request.htmx:
        return render_page(request, "diff_file.html", {**(around or {}), **context}, harness)
    return render(request, "parts/diff_rows.html" if start else "parts/diff_table.html", context)


def _read_shown_look(request: Request) -> Look:
    """As the page that asks shows it: its parts say so, and change nothing that is remembered."""
    if not request.htmx:
        return read_look(request)
    return Look(_read_layout(request.GET.get("layout", "")), request.GET.get("space") == "hide")


def _find_number(files: Sequence[FileDiff], path: str) -> int:
    for number, file in enumerate(files, 1):
        if file.path.encode("utf-8", "replace") == path.encode("utf-8", "replace"):
            return number
    raise Http404("no such file in the change")


def _answer_gap(request: Request, change: Change, look: Look, number: int) -> HttpResponse:
    first, _, last = request.GET["gap"].partition("-")
    lines = (read_number(first) or 0, read_number(last) or 0)
    show = request.GET.get("show", "")
    found = view_gap(change.files, number, change.sources, look, lines, show=show, notes=change.notes)
    if found is None:
        raise Http404("no such lines are folded")
    context = {"file": _address(found, change, look), "diff": DiffPage([], look, change.comment_address)}
    return render(request, "parts/diff_rows.html", context)


def _answer_line(
    request: Request, change: Change, harness: Harness, number: int, around: Mapping[str, Any]
) -> HttpResponse:
    side: Side = "old" if request.GET.get("side") == "old" else "new"
    line = read_number(request.GET["line"]) or 0
    row = view_line(change.files, number, side, line, change.sources)
    if row is None:
        raise Http404("no such line")
    if request.htmx:
        return HttpResponse(row.html)
    return render_page(request, "diff_line.html", {**around, "row": row}, harness)
