"""The name of a cluster: what the model is shown of its failures and of the nearest others, and what it must answer."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from evolution.prompts.fences import WARNING, fenced
from harness_repo.runtime.chat import ChatRequest


class ClusterName(BaseModel):
    """What the failures of a cluster have in common that others have not."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=80, description="what fails, in a few words")
    description: str = Field(max_length=400, description="what the failures have in common, one sentence")


INSTRUCTIONS = f"""\
You name clusters of failures of an LLM agent, for the people who repair it.

You get failures of one cluster, and failures that are like them but belong to other clusters. Say what the members \
have in common and the others have not: what the agent did wrong, and in what situation. A name that would fit the \
others too is of no use. Do not guess at causes, and do not name single products, people or ids.

Write in the language of most of the members.

{WARNING}

Answer with one JSON object of the given schema, and nothing else."""


def cluster_name_request(
    members: Sequence[str], others: Sequence[str], taken: Sequence[str], *, model: str, max_tokens: int = 400
) -> ChatRequest:
    """The request to name the cluster of `members`; `taken` are names that other clusters have."""
    user = "\n\n".join(
        [
            "Name this cluster.",
            fenced("members", list(members)),
            "Failures that are like them, of other clusters or of none:",
            fenced("others", list(others)),
            "Names that are taken:",
            fenced("taken", list(taken)),
        ]
    )
    return ChatRequest(
        model=model,
        messages=[{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": user}],
        response_schema={"name": "ClusterName", "schema": ClusterName.model_json_schema()},
        parameters={"temperature": 0, "max_tokens": max_tokens},
    )
