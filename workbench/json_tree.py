"""JSON values and long texts as folded HTML of a bounded size: what is cut can be asked for in full.

A value of any size and shape comes to at most some hundred kilobytes; nothing in it becomes markup.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from workbench.text_marks import HIDDEN, reveal

# Characters of a text that stands alone, and of one inside a value.
LONGEST_TEXT = 1_500
LONGEST_LEAF = 600
# Entries of one list or object, of a whole value, and how deep it is unfolded.
MOST_ENTRIES = 100
MOST_NODES = 500
MOST_LEVELS = 12
# What is longer is shown on a page of its own, and not put into the one that asks.
MOST_IN_PAGE = 300_000


@dataclass
class _Tree:
    """One value being drawn: where the rest of it can be had, and how many nodes may still come."""

    address: str
    left: int = MOST_NODES


def render_value(value: Any, address: str = "", path: str = "") -> SafeString:
    """A value as a folded tree, a text as it is, cut where it is long.

    `address` answers with the whole of what stands at ?path=, a JSON pointer; without one nothing more is offered.
    """
    if isinstance(value, str):
        return render_text(value, address, path)
    tree = _Tree(address)
    if isinstance(value, dict | list) and value:
        return format_html('<div class="tree">{}</div>', _entries(value, tree, path, 0))
    return format_html('<div class="tree">{}</div>', _scalar(value))


def render_text(text: Any, address: str = "", path: str = "", longest: int = LONGEST_TEXT) -> SafeString:
    """A text with its line breaks, as it was written, cut where it is long."""
    whole = str(text)
    if len(whole) <= longest:
        return format_html('<div class="text">{}</div>', reveal(whole))
    more = _offer(len(whole), address, path)
    return format_html('<div class="cut"><div class="text">{}…</div>{}</div>', reveal(whole[:longest]), more)


def render_whole(value: Any, address: str, path: str) -> SafeString:
    """What "show all" brings into the page; of what is too long even for that, the beginning."""
    text = write_whole(value)
    if len(text) > MOST_IN_PAGE:
        return render_text(text, address, path, MOST_IN_PAGE)
    return format_html('<div class="text whole">{}</div>', reveal(text))


def write_whole(value: Any) -> str:
    """A value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else write_json(value)


def write_json(value: Any) -> str:
    """JSON laid out for reading and editing, with hidden characters written by their code."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return HIDDEN.sub(lambda match: json.dumps(match.group())[1:-1], text)


def _entries(value: Any, tree: _Tree, path: str, level: int) -> SafeString:
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    rows = []
    for name, inner in pairs[:MOST_ENTRIES]:
        if tree.left <= 0:
            break
        tree.left -= 1
        rows.append((_entry(str(name), inner, tree, path, level),))
    left_out = len(pairs) - len(rows)
    more = format_html("<li>{}</li>", _rest(left_out, tree, path)) if left_out else SafeString("")
    return format_html("<ul>{}{}</ul>", format_html_join("", "{}", rows), more)


def _entry(name: str, value: Any, tree: _Tree, path: str, level: int) -> SafeString:
    here = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
    key = format_html('<span class="key">{}</span>', reveal(_shorten(name)))
    if isinstance(value, dict | list) and value:
        if level + 1 >= MOST_LEVELS:
            return format_html("<li>{} {}</li>", key, _rest(len(value), tree, here))
        inner = _entries(value, tree, here, level + 1)
        is_open = SafeString(" open") if level == 0 and len(value) <= 10 else SafeString("")
        size = format_html('<span class="muted">{}</span>', _size(value))
        return format_html(
            "<li><details{}><summary>{} {}</summary>{}</details></li>", is_open, key, size, inner
        )
    return format_html("<li>{} {}</li>", key, _leaf(value, tree, here))


def _leaf(value: Any, tree: _Tree, path: str) -> SafeString:
    if isinstance(value, str) and len(value) > LONGEST_LEAF:
        more = _offer(len(value), tree.address, path)
        return format_html(
            '<span class="cut"><span class="text">{}…</span>{}</span>', reveal(value[:LONGEST_LEAF]), more
        )
    return _scalar(value)


def _scalar(value: Any) -> SafeString:
    if isinstance(value, str):
        return format_html('<span class="text">{}</span>', reveal(value))
    written = json.dumps(value, ensure_ascii=False)
    return format_html('<span class="literal">{}</span>', reveal(_shorten(written)))


def _size(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{len(value)}}}"
    return f"[{len(value)}]"


def _rest(count: int, tree: _Tree, path: str) -> SafeString:
    words = ngettext("%d more", "%d more", count) % count
    offer = _link(gettext("show all"), tree.address, path, fits=True)
    return format_html('<span class="cut"><span class="muted">… {}</span> {}</span>', words, offer)


def _offer(length: int, address: str, path: str) -> SafeString:
    words = ngettext("%(n)s character", "%(n)s characters", length) % {
        "n": f"{length:,}".replace(",", "\u202f")
    }
    if not address:
        return format_html('<span class="muted small">{}</span>', words)
    label = gettext("show all %(length)s") % {"length": words}
    return _link(label, address, path, fits=length <= MOST_IN_PAGE)


def _link(label: str, address: str, path: str, *, fits: bool) -> SafeString:
    """A link to the whole value; one that fits is brought into the page where scripts run."""
    if not address:
        return SafeString("")
    joint = "&" if "?" in address else "?"
    target = f"{address}{joint}{urlencode({'path': path})}"
    if not fits:
        return format_html(
            '<a class="show-all" href="{}" target="_blank" rel="noopener">{}</a>', target, label
        )
    return format_html(
        '<a class="show-all" href="{0}" hx-get="{0}" hx-target="closest .cut" hx-swap="outerHTML">{1}</a>',
        target,
        label,
    )


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
