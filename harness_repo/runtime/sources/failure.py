"""The way in which a source fails: a code that the model is told, with a detail."""

from typing import Literal

Code = Literal[
    "unknown_tool",
    "bad_arguments",
    "not_found",
    "timeout",
    "malformed_result",
    "permission_denied",
    "server_error",
    "connection",
]
MOST_DETAIL = 300


class ToolFailure(Exception):
    """A call that brought no result."""

    def __init__(self, code: Code, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = " ".join(detail.split())[:MOST_DETAIL]

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code
