"""The way in which a source fails: a code that the model is told, with a detail."""

from collections.abc import Sequence
from typing import Literal

from harness_repo.runtime.hiding import hide

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
# Of what is looked through for secrets; nothing beyond is shown.
_MOST_SEARCHED = 100_000


class ToolFailure(Exception):
    """A call that brought no result."""

    def __init__(self, code: Code, detail: str = "") -> None:
        super().__init__(code)
        self.code = code
        # As it came, and so perhaps with secrets in it.
        self._detail = detail

    def tell(self, secrets: Sequence[str] = ()) -> str:
        """The code and the detail, cut to MOST_DETAIL after the secrets are out of it."""
        hidden = hide(self._detail[:_MOST_SEARCHED], secrets)
        detail = " ".join(hidden.split())[:MOST_DETAIL]
        return f"{self.code}: {detail}" if detail else self.code
