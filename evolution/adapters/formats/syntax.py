"""What the JSON scanner's errors mean: a mistake, or only that the text stops too early."""

import json
import re

from django.utils.translation import gettext as _

# What may be the beginning of something right at a text's end: -Infinity, or \uXXXX in a string.
_PIECE = re.compile(r"\s*\\?[\w.+-]{0,12}\s*\Z")


def is_unfinished(text: str, error: json.JSONDecodeError, position: int) -> bool:
    """Say whether a text with an error at a position could be right with more text behind it."""
    return error.msg.startswith("Unterminated string") or bool(_PIECE.match(text, position))


def describe(error: json.JSONDecodeError, first_line: int = 0) -> str:
    """Say what is wrong, and where: on which line, too, for what starts on another."""
    what = {"line": first_line + error.lineno - 1, "column": error.colno, "problem": error.msg}
    if first_line and error.lineno > 1:
        return _("broken JSON on line %(line)d, column %(column)d (%(problem)s)") % what
    return _("broken JSON at column %(column)d (%(problem)s)") % what
