"""Faults that are injected into tool calls, to see what an agent does when its tools fail it.

Which calls fail follows from a seed, the tool and the number of the call alone: the same run fails in the same
places, whatever other tools are called in between, and whichever of them is quicker.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from harness_repo.format.tools import LOAD_SKILL

FaultKind = Literal["timeout", "malformed", "permission_denied", "server_error"]
KINDS: tuple[str, ...] = get_args(FaultKind)

EVERY_TOOL = "*"

_DECIMAL = re.compile(r"[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]{1,3})?")

# What the model is told, as it would be of a tool that really failed so; a time-out says how long it took.
_ERRORS: dict[str, str] = {
    "timeout": "timeout: no answer within {seconds:g} seconds",
    "malformed": "malformed_result: the answer is not JSON",
    "permission_denied": "permission_denied: this caller may not use the tool",
    "server_error": "server_error: 500 Internal Server Error",
}


@dataclass(frozen=True)
class Fault:
    """Calls of `tool` ("*": every tool) fail in this way, with probability `rate`."""

    kind: FaultKind
    tool: str = EVERY_TOOL
    rate: float = 1.0
    # The most calls of each tool that fail so in one run; None: no bound.
    times: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """What read_faults reads; `times` only where there is a bound."""
        times = {} if self.times is None else {"times": self.times}
        return {"kind": self.kind, "tool": self.tool, "rate": self.rate, **times}

    def error(self, seconds: float) -> str:
        """The error of a call that fails so, of a tool that may take that long."""
        return _ERRORS[self.kind].format(seconds=seconds)


class FaultPlan:
    """Decides call by call, for one run."""

    def __init__(self, faults: Sequence[Fault], seed: str) -> None:
        self._faults = faults
        self._seed = seed
        self._calls: Counter[str] = Counter()
        self._injected: Counter[tuple[int, str]] = Counter()

    def next(self, tool: str) -> Fault | None:
        """The fault of the tool's next call, or None; of several that would hit, the first in the list."""
        self._calls[tool] += 1
        for number, fault in enumerate(self._faults):
            if fault.tool in (EVERY_TOOL, tool) and self._hits(number, fault, tool):
                self._injected[number, tool] += 1
                return fault
        return None

    def _hits(self, number: int, fault: Fault, tool: str) -> bool:
        if fault.times is not None and self._injected[number, tool] >= fault.times:
            return False
        key = f"{self._seed}\n{number}\n{fault.kind}\n{tool}\n{self._calls[tool]}"
        return _fraction(key) < fault.rate


def read_faults(data: object) -> tuple[Fault, ...]:
    """Faults from JSON: [{"kind", "tool"?, "rate"?, "times"?}]. ValueError says what is wrong, and where."""
    if data is None:
        return ()
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise ValueError("faults: not a list")
    return tuple(_read_fault(entry, f"faults[{number}]") for number, entry in enumerate(data))


def unknown_fault_tools(faults: Iterable[Fault], tools: Iterable[str]) -> list[str]:
    """The tools that faults name and that are not there, sorted: these faults never strike."""
    known = {EVERY_TOOL, *tools}
    return sorted({fault.tool for fault in faults if fault.tool not in known})


def parse_fault(text: str) -> Fault:
    """A fault as a command line has it: KIND, KIND:TOOL or KIND:TOOL:RATE. ValueError says what is wrong."""
    kind, *rest = text.split(":")
    if len(rest) > 2:
        raise ValueError(f"{text!r}: write KIND:TOOL:RATE")
    entry: dict[str, Any] = {"kind": kind, "tool": rest[0] if rest and rest[0] else EVERY_TOOL}
    if len(rest) == 2:
        entry["rate"] = _read_rate(rest[1])
    return _read_fault(entry, text)


def _read_fault(entry: object, where: str) -> Fault:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{where}: not an object")
    unknown = sorted(map(str, set(entry) - set(Fault.__dataclass_fields__)))
    if unknown:
        raise ValueError(f"{where}: {', '.join(unknown)} is not known")
    kind: Any = entry.get("kind")
    tool = entry.get("tool", EVERY_TOOL)
    rate, times = entry.get("rate", 1.0), entry.get("times")
    wrong = _wrong_value(kind, tool, rate, times)
    if wrong:
        raise ValueError(f"{where}: {wrong}")
    return Fault(kind, tool, float(rate), times)


def _wrong_value(kind: object, tool: object, rate: object, times: object) -> str | None:
    if kind not in KINDS:
        return f"kind is one of {', '.join(KINDS)}"
    if not isinstance(tool, str) or not tool or not tool.isprintable():
        return f"tool is the name of a tool, or {EVERY_TOOL}"
    if tool == LOAD_SKILL:
        return f"{LOAD_SKILL} is the runtime's own tool, and does not fail"
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        return "rate is a number from 0 to 1"
    if times is not None and (not isinstance(times, int) or isinstance(times, bool) or times < 1):
        return "times is a whole number of at least 1"
    return None


def _read_rate(text: str) -> float | str:
    """The number, or the text when it is none; Python would take more for one, such as 0_1."""
    return float(text) if _DECIMAL.fullmatch(text) else text


def _fraction(key: str) -> float:
    """A number in [0, 1) that follows from the key, evenly spread over keys."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
