"""Our own runtime as a runner: one case, one run of a harness with the case's tools and faults."""

import contextlib
from dataclasses import dataclass

from harness_repo.format.harness import Harness
from harness_repo.runtime.access import NO_ACCESS, ToolAccess
from harness_repo.runtime.agent import run_agent
from harness_repo.runtime.chat import ChatModel
from harness_repo.runtime.context import build_variables
from harness_repo.runtime.faults import read_faults
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.runtime.trajectory import Trajectory


@dataclass(frozen=True)
class NativeRunner:
    """Runs a harness of our format; tools reach the world only as far as `access` goes."""

    harness: Harness
    model: ChatModel
    # The name that the model's endpoint knows it by.
    model_name: str
    access: ToolAccess = NO_ACCESS

    async def run(self, case: RunCase) -> Trajectory:
        """Answer the case once. A case that cannot be read is status "runner_error" of the kind "case"."""
        try:
            variables = build_variables(case.request, case.context)
            sandbox = self._build_sandbox(case, variables["request"])
        except ValueError as failure:
            return Trajectory("runner_error", None, error=str(failure), error_kind="case")
        try:
            return await run_agent(
                self.harness,
                variables,
                self.model,
                model_name=self.model_name,
                sandbox=sandbox,
                repeat=case.repeat,
            )
        finally:
            # What goes wrong now changes nothing of what has happened.
            with contextlib.suppress(Exception):
                await sandbox.close()

    def _build_sandbox(self, case: RunCase, request: dict[str, object]) -> ToolSandbox:
        return ToolSandbox(
            self.harness.tools,
            case.fixtures,
            context=case.context,
            request=request,
            faults=read_faults(case.faults),
            seed=f"{case.seed}/{case.key}/{case.repeat}",
            access=self.access,
        )
