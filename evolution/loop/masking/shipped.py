"""The rules that ship. Where two find the same, the longer find names it, and of equal ones the first."""

from evolution.loop.masking.keys import KEYS
from evolution.loop.masking.personal import PERSONAL

SHIPPED = (*KEYS, *PERSONAL)
