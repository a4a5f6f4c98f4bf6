"""Beside stage 1: personal data and secrets are taken out of records before anything of them is stored.

`[phone 1]` stands in for what a rule finds: numbered within its record in the order of appearance, the same value by
the same number, so that importing a record again gives the very same. Ids are told apart by a keyed digest instead,
`[phone ~1f3a…]`, and so are parts of a trace, which are numbered once the trace is put together.
"""

from evolution.loop.masking.current import current_masker, current_rules, rule_of
from evolution.loop.masking.masker import Counts, Found, Masker, MaskingError, number_found
from evolution.loop.masking.rule import Rule
from evolution.loop.masking.shipped import SHIPPED

__all__ = [
    "SHIPPED",
    "Counts",
    "Found",
    "Masker",
    "MaskingError",
    "Rule",
    "current_masker",
    "current_rules",
    "number_found",
    "rule_of",
]
