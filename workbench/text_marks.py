"""Shows text that people and models wrote, safely: hidden characters made visible, words marked, Markdown cleaned."""

import difflib
import re
import unicodedata

import nh3
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

# Controls, format characters (zero width, bidirectional), line separators, fillers and tag characters: whatever
# can make a text read otherwise than it is. Tab, newline and the ideographic space are ordinary.
HIDDEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# A word, a run of blanks, or a single other character: Chinese is compared character by character.
TOKEN = re.compile(r"[A-Za-z0-9_]+|\s+|.", re.DOTALL)
# Lines less alike than this have no words in common worth marking.
ALIKE = 0.35
ALLOWED_TAGS = {
    "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "strong",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip

_markdown = MarkdownIt("commonmark", {"html": False}).enable("table")


def reveal(text: object) -> SafeString:
    """Escape `text`, and put the name of each hidden or bidirectional character where it stands."""
    plain = str(text)
    parts: list[SafeString] = []
    end = 0
    for match in HIDDEN.finditer(plain):
        parts += [escape(plain[end : match.start()]), _name_character(match.group())]
        end = match.end()
    parts.append(escape(plain[end:]))
    return mark_safe("".join(parts))  # noqa: S308  every part is escaped above


def _name_character(character: str) -> SafeString:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "control character")
    return format_html('<span class="hidden-char" title="{}">{}</span>', name, code)


def has_hidden(text: str) -> bool:
    """Whether a text holds a character that a reader would not see."""
    return HIDDEN.search(text) is not None


def mark_words(old: str, new: str) -> tuple[SafeString, SafeString]:
    """Two texts as HTML, what was taken out of the first in <del>, what was put into the second in <ins>.

    Texts that have little in common come back without marks: marking everything shows nothing.
    """
    old_tokens, new_tokens = TOKEN.findall(old), TOKEN.findall(new)
    matcher = difflib.SequenceMatcher(None, old_tokens, new_tokens, autojunk=False)
    if matcher.ratio() < ALIKE:
        return reveal(old), reveal(new)
    left: list[tuple[str, str]] = []
    right: list[tuple[str, str]] = []
    for operation, i, i_end, j, j_end in matcher.get_opcodes():
        is_same = operation == "equal"
        left.append(("" if is_same else "del", "".join(old_tokens[i:i_end])))
        right.append(("" if is_same else "ins", "".join(new_tokens[j:j_end])))
    return _join_marked(left), _join_marked(right)


def _join_marked(parts: list[tuple[str, str]]) -> SafeString:
    marked = [
        format_html("<{0}>{1}</{0}>", tag, reveal(text)) if tag else reveal(text)
        for tag, text in parts
        if text
    ]
    return format_html_join("", "{}", ((part,) for part in marked))


def render_markdown(text: str) -> SafeString:
    """Markdown as HTML that can't run or fetch anything: no raw HTML, no images, only http(s) links."""
    html = _markdown.render(HIDDEN.sub("\ufffd", text))
    clean = nh3.clean(
        html,
        tags=ALLOWED_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https"},
        link_rel="noopener nofollow",
    )
    return mark_safe(clean)  # noqa: S308  cleaned by nh3
