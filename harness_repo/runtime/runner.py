"""What an evaluation asks of an agent, ours or another one: a case in, a trajectory out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from harness_repo.runtime.context import normalise_request
from harness_repo.runtime.trajectory import Trajectory

FORMAT = "case/1"


@dataclass(frozen=True)
class RunCase:
    """What a runner is given of a case; what a right answer states is never part of it."""

    key: str
    # {"danmaku": [...], "history": [...]}; one with "user" is a conversation (see `conversation`).
    request: Mapping[str, Any]
    context: Mapping[str, Any] = field(default_factory=dict)
    # Tool name -> [{"arguments": ..., "result": ...}].
    fixtures: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    # Faults to inject into tool calls, as data; see `faults`.
    faults: Sequence[Mapping[str, Any]] = ()
    # The version that is measured, as a full commit id.
    commit: str = ""
    repeat: int = 0
    # Everything that is left to chance in a run follows from this.
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The case as one JSON-ready object, as schemas/case.schema.json has it; the simulated user stays away.

        Danmaku and history are what our runtime makes of them. ValueError when the request cannot be read.
        """
        normal = normalise_request(self.request)
        return {
            "format": FORMAT,
            "key": self.key,
            "request": {
                **{name: value for name, value in self.request.items() if name != "user"},
                "danmaku": [asdict(item) for item in normal.danmaku],
                "history": list(normal.history),
            },
            "context": dict(self.context),
            "fixtures": {tool: list(entries) for tool, entries in self.fixtures.items()},
            "faults": [dict(fault) for fault in self.faults],
            "commit": self.commit,
            "repeat": self.repeat,
            "seed": self.seed,
        }


class Runner(Protocol):
    """An agent that can be measured: our runtime, a team's command, a team's HTTP endpoint."""

    async def run(self, case: RunCase) -> Trajectory:
        """Answer the case once; whatever goes wrong is the trajectory's status and error, and nothing is raised."""
        ...
