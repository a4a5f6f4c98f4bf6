"""What reviewers say of single lines of a draft: only the changes that stand there are reworked."""

import re
from collections.abc import Callable, Sequence
from functools import partial

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import HarnessView
from evolution.adapters.rehearsal.feedback import NotUnderstood, Wish, heed, list_unheeded
from evolution.adapters.rehearsal.sentences import Change
from evolution.prompts.feedback import LineComment, read_feedback

DROP = re.compile(
    r"删掉|删除|删去|去掉|拿掉|不需要|不要这|多余"
    r"|\b(?:remove|drop|delete|not needed|unnecessary|take (?:it|this) out)\b",
    re.IGNORECASE,
)


def heed_all(
    feedback: str, view: HarnessView, blamed: str, changes: Sequence[Change]
) -> tuple[list[Change], list[str]]:
    """The changes as reviewers want them, and their words that ask for nothing known.

    What they say of lines comes first, then their words about the whole.
    """
    words, comments = read_feedback(feedback)
    wanted, unheeded = list(changes), list[str]()
    for comment in comments:
        wish = Wish("\n".join(text for _author, text in comment.comments), view, comment.path, comment.path)
        wanted, left = _try(wish, wanted, partial(_heed_line, comment, wish))
        unheeded += [f"{comment.path}: {each}" for each in left]
    if words:
        wish = Wish(words, view, blamed)
        wanted, left = _try(wish, wanted, partial(heed, wish))
        unheeded += left
    return wanted, unheeded


def _try(
    wish: Wish, changes: list[Change], step: Callable[[list[Change]], list[Change]]
) -> tuple[list[Change], list[str]]:
    """What a step makes of the changes, and the words that it did not heed: all of them where none is known."""
    try:
        return step(changes), [each for each in list_unheeded(wish) if not DROP.search(each)]
    except NotUnderstood as words:
        return changes, [str(words)]


def _heed_line(comment: LineComment, wish: Wish, changes: list[Change]) -> list[Change]:
    """Only what was drafted on the line is touched, else what was drafted in its file."""
    mine = [change for change in changes if _is_about(comment, change)]
    is_dropped = mine and DROP.search(wish.text) and not sentences.quoted(wish.text)
    mine = mine or [change for change in changes if change.path == comment.path]
    if not mine:
        raise NotUnderstood(" ".join(wish.text.split()))
    reworked = [] if is_dropped else heed(wish, mine)
    at = changes.index(mine[0])
    rest = [change for change in changes if change not in mine]
    return list(dict.fromkeys([*rest[:at], *reworked, *rest[at:]]))


def _is_about(comment: LineComment, change: Change) -> bool:
    """Whether the change is what stands on the line, or anywhere in the file where that is spoken of."""
    if change.path != comment.path:
        return False
    if not comment.line:
        return True
    told = [change.text, *sentences.quoted(change.text)] if change.what == "hook" else [change.text]
    return any(text in comment.line_text for text in told)
