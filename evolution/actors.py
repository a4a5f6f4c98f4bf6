"""Who does something, and what that role may do. Every action takes an Actor first, or raises NotAllowed."""

from dataclasses import dataclass
from enum import IntEnum


class Role(IntEnum):
    """Roles, each including those before it; the names are those of Django's groups."""

    VIEWER = 0
    ANNOTATOR = 1
    DEVELOPER = 2
    OPERATOR = 3


class NotAllowed(Exception):
    """The actor's role is not enough for the action."""


@dataclass(frozen=True)
class Actor:
    """A person by user name, or a part of the system, with its role."""

    name: str
    role: Role
    email: str = ""

    def require(self, role: Role) -> None:
        """Raise NotAllowed unless the actor has at least `role`."""
        if self.role < role:
            raise NotAllowed(f"{self.name} is {self.role.name.lower()}; this needs {role.name.lower()}")


SYSTEM = Actor("system", Role.OPERATOR)
