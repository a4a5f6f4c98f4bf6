r"""What a masking rule is, and the pieces that patterns of rules share.

A pattern is a regular expression of the package `regex`. What its group `secret` matches is masked, without such a
group all of it; what matches its groups `luhn` or `cn_id` must have the right check digit.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One kind of thing to mask."""

    name: str
    # `[label 1]` stands in for what is masked
    label: str
    pattern: str
    description: str = ""
    # opens something: masked also where personal data is not, as in results of evaluations
    is_secret: bool = False
    # An RE2 expression that matches wherever the pattern does, and often where it does not: it saves the search for
    # the pattern in the many records that have nothing of the kind. Empty: the pattern is always looked for.
    quick: str = ""
    # How many characters before and after each match of `quick` a match of the pattern can reach: the rest of a long
    # text is not searched. None: all of it is.
    reach: tuple[int, int] | None = None


# Neither a letter nor a digit stands before, unless it is the end of an escape such as \n in JSON inside a text.
START = r"(?:(?<![0-9A-Za-z０-９])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4}))"
END = r"(?![0-9A-Za-z０-９])"
# What stands between a name and its value: in JSON, also escaped once or twice, in code, in Chinese and English.
IS = r"""[\\"'`]{0,8}\s{0,3}(?:[:：=]|=>|是|为|\bis\b)\s{0,3}[\\"'`]{0,8}"""
QUICK_IS = r"""[\\"'`]*\s*(?:[:：=]|=>|是|为|is)\s*[\\"'`]*"""
