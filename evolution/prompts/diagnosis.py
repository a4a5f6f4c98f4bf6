"""The diagnosis of a cluster: what the model is shown of the failures and the harness, and what it must answer."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evolution.prompts.fences import WARNING, fenced
from harness_repo.runtime.chat import ChatRequest

Part = Literal["skill", "hook", "prompt", "tool", "knowledge", "model", "judge"]

# Longer texts of a transcript are cut, with a mark, so that one case cannot fill the context.
MAX_TEXT = 1_500
MAX_MESSAGES = 24


class CaseBrief(BaseModel):
    """A failure case as a model is shown it."""

    model_config = ConfigDict(extra="forbid")

    id: str
    category: str = ""
    request: Any = Field(default_factory=dict)
    context: Any = Field(default_factory=dict)
    # A trajectory/1 object, or None when the source had none.
    trajectory: dict[str, Any] | None = None
    reply: str = ""
    symptom: str = ""
    # metric -> what the judge said
    reasons: dict[str, str] = Field(default_factory=dict)
    # [{"kind", "text"}] of the judge
    findings: list[dict[str, str]] = Field(default_factory=list)


class Evidence(BaseModel):
    """A passage of a case that bears the hypothesis."""

    model_config = ConfigDict(extra="forbid")

    case: str = Field(description="id of the case")
    turn: int = Field(ge=0, description="model turn the quote is from; 0 for the request")
    quote: str = Field(min_length=1, description="verbatim from the case, at most 200 characters")


class DiagnosisOutput(BaseModel):
    """Why the cases of a cluster fail, and what to change."""

    model_config = ConfigDict(extra="forbid")

    cluster_name: str = Field(min_length=1, max_length=80, description="what fails, in a few words")
    cluster_description: str = Field(description="what the cases have in common, one or two sentences")
    part: Part = Field(description="part of the harness that is to blame")
    path: str = Field(description="file blamed, or the file to be made; empty for model, judge and knowledge")
    hypothesis: str = Field(
        min_length=1, description="root cause, one to three sentences, specific and refutable"
    )
    confidence: float = Field(ge=0, le=1)
    evidence: list[Evidence] = Field(min_length=1, max_length=8)
    first_wrong_turn: int | None = Field(
        ge=0, description="first model turn that went wrong, null if unknown"
    )
    changes: list[str] = Field(description="changes to make, each one sentence that names its file")
    refuted_by: str = Field(description="an observation that would show the hypothesis to be wrong")


INSTRUCTIONS = f"""\
You are the diagnostician of an LLM agent that answers viewers in a live shopping room. The agent's \
weights never change. What can change is its harness: skills (a description that is always visible, a \
body that is loaded on demand), hooks (checks that make the agent retry, or rewrite or block a reply), \
prompt sections, and tools.

You get failure cases that were clustered together, and the harness that produced them. Find the one \
root cause that explains most of the cases, and say what to change.

How to work
1. Read each transcript turn by turn: which skill was loaded, which tools were called with what \
arguments, what came back, what the reply made of it. Find the first turn that went wrong. A wrong reply \
is often the consequence of a skill that was not chosen, or of a tool that was not called.
2. Compare with the files. Is there a skill for this question, and does its description have the words \
that viewers use? Do its steps call the right tool, and does it tell which fields to state? Is there a \
rule against the false promise, and is it so far up in a long list that the model overlooks it?
3. Blame exactly one part: skill, hook, prompt, tool, knowledge (the facts are nowhere), model (the \
harness is right, and was not followed) or judge (the reply was right, and the score is wrong).
4. Prefer the smallest change that mends the whole kind of failure, and that leaves the rest alone. One \
more rule for every phrase makes the agent overlook older rules: when the list of rules is long, prefer \
a hook or a skill.
5. Support the hypothesis with verbatim quotes from the cases, and say what would refute it. State low \
confidence when the cases do not share one cause.

Write every text for people (names, descriptions, hypothesis, changes) in the language that the \
harness's prompts are written in. Keep quotes in their own language.

{WARNING}

Answer with one JSON object of the given schema, and nothing else."""


def diagnosis_request(
    cases: Sequence[CaseBrief], files: Mapping[str, str], *, model: str, max_tokens: int = 2_000
) -> ChatRequest:
    """The request to diagnose `cases` on the harness `files` (path -> text)."""
    shown = [_shown(case) for case in cases]
    schema = DiagnosisOutput.model_json_schema()
    user = "\n\n".join(
        [
            f"Diagnose these {len(cases)} failure cases.",
            fenced("cases", shown),
            "The harness that produced them:",
            fenced("files", dict(files)),
        ]
    )
    return ChatRequest(
        model=model,
        messages=[{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": user}],
        response_schema={"name": "DiagnosisOutput", "schema": schema},
        parameters={"temperature": 0, "max_tokens": max_tokens},
    )


def _shown(case: CaseBrief) -> dict[str, Any]:
    """The case as shown: what is empty left out, the trajectory without the prompt that it repeats."""
    data = case.model_dump()
    data["trajectory"] = _trajectory_excerpt(case.trajectory)
    return {key: _cut(value) for key, value in data.items() if value not in (None, "", {}, [])}


def _trajectory_excerpt(trajectory: dict[str, Any] | None) -> dict[str, Any] | None:
    if trajectory is None:
        return None
    kept = ("status", "skills_loaded", "tool_calls", "hooks", "calls", "error")
    excerpt = {key: trajectory[key] for key in kept if trajectory.get(key)}
    messages = [entry for entry in trajectory.get("messages") or [] if isinstance(entry, dict)]
    if "tool_calls" not in excerpt:
        return {**excerpt, "messages": messages[-MAX_MESSAGES:]} if messages else excerpt
    said = [
        entry for entry in messages if entry.get("role") in {"user", "assistant"} and entry.get("content")
    ]
    # Of a conversation, what was said too; calls and results are there already.
    if sum(entry["role"] == "user" for entry in said) > 1:
        excerpt["messages"] = [
            {"role": entry["role"], "content": entry["content"]} for entry in said[-MAX_MESSAGES:]
        ]
    return excerpt


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else value[:MAX_TEXT] + " [cut]"
    if isinstance(value, list):
        return [_cut(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _cut(entry) for key, entry in value.items()}
    return value
