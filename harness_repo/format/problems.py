"""What is wrong with a file of a harness, and where: the currency of tolerant reading."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a problem matters: an error makes a part unusable or unportable, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Problem:
    """One thing wrong in one file; `code` is stable, `message` and `hint` are English prose for people."""

    path: str
    # 1-based; 0 when the problem is of the file as a whole.
    line: int
    severity: Severity
    code: str
    message: str
    hint: str = ""

    @property
    def is_error(self) -> bool:
        """Whether the part it is about is unusable or unportable."""
        return self.severity is Severity.ERROR


def error(path: str, line: int, code: str, message: str, hint: str = "") -> Problem:
    """A problem of severity ERROR."""
    return Problem(path, line, Severity.ERROR, code, message, hint)


def warning(path: str, line: int, code: str, message: str, hint: str = "") -> Problem:
    """A problem of severity WARNING."""
    return Problem(path, line, Severity.WARNING, code, message, hint)


def format_problem(problem: Problem) -> str:
    """The problem as `path:line: severity code message (hint)`, on one line whatever it quotes."""
    hint = f" ({problem.hint})" if problem.hint else ""
    place = f"{problem.path}:{problem.line}"
    return visible(f"{place}: {problem.severity} {problem.code} {problem.message}{hint}")


def visible(text: str) -> str:
    """The text with hidden characters written out: paths and files may be anybody's, and forge no line of ours."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
