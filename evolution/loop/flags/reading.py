"""A YAML file of a harness as flags look at it: its values, however broken, and flags on the lines where they stand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evolution.loop.flags.flag import Flag, FlagKind, Side
from harness_repo.format.yamlfile import YamlFile, as_mapping, read_yaml
from harness_repo.format.yamlnodes import Location


@dataclass(frozen=True)
class Part:
    """One side of a file; without values where there is no file, or none that is a mapping."""

    path: str
    side: Side
    read: YamlFile
    # where what can't be read is wrong
    broken_line: int = 1

    @property
    def values(self) -> dict[str, Any]:
        """The values of the file."""
        return as_mapping(self.read.value)

    def has(self, at: Location) -> bool:
        """Whether there is a value at the location."""
        value: Any = self.read.value
        for key in at:
            try:
                value = value[key]
            except (LookupError, TypeError):
                return False
        return True

    def flag(self, at: Location, kind: FlagKind, detail: str) -> Flag:
        """A flag beside the value, or the nearest thing around it."""
        line = self.read.line_of(at) if self.values else self.broken_line
        return Flag(self.path, self.side, line, kind, detail)


def read_part(path: str, data: bytes, side: Side = "new") -> Part:
    """Read a YAML file; never raises."""
    if not path or not data:
        return Part(path, side, YamlFile({}))
    read, problems = read_yaml(path, data)
    line = next((problem.line for problem in problems if problem.is_error), 1)
    return Part(path, side, read or YamlFile({}), max(line, 1))


def differing_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys whose values are not the same, those of the old first."""
    return [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]
