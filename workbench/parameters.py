"""Reads the numbers of a query or a form; anybody can write anything there, so nothing raises."""

# Every number of so many digits fits PostgreSQL's bigint.
MOST_DIGITS = 18


def read_number(text: str) -> int | None:
    """The number that `text` writes in the digits 0-9, or None: "²" and the like are digits to Python, too."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
    return int(text) if is_number else None
