"""The diagnosis of a cluster: what the model is shown of the failures and the harness, and what it must answer."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evolution.prompts.fences import WARNING, fenced
from harness_repo.runtime.chat import ChatRequest

Part = Literal["skill", "hook", "prompt", "tool", "knowledge", "model", "judge", "label"]
# Parts that no change of the harness mends.
NOT_THE_HARNESS: frozenset[str] = frozenset({"knowledge", "model", "judge", "label"})

# Kinds of fault of one agent with tools. Those that published taxonomies of agents' failures have in common (MAST of
# Cemri et al. 2025, TRAIL of Deshpande et al. 2025, the error analysis of tau-bench, 2024), with the faults of
# instructions, labels and judges that a harness's maintainer can mend.
FaultKind = Literal[
    "missing_instruction",
    "conflicting_instructions",
    "ignored_instruction",
    "wrong_skill",
    "missing_skill",
    "wrong_tool",
    "wrong_arguments",
    "tool_failure",
    "unverified_claim",
    "policy_violation",
    "incomplete_task",
    "lost_context",
    "repetition",
    "premature_end",
    "wrong_language",
    "format",
    "bad_label",
    "judge_error",
    "missing_knowledge",
    "model_limit",
    "other",
]

MOST_HYPOTHESES = 4
LONGEST_QUOTE = 200
# Of the texts of an answer: more is no hypothesis that people could read, or the editor carry out.
LONGEST_TEXT = 4_000
LONGEST_PATH = 300
MOST_CHANGES = 20

Sentence = Annotated[str, Field(max_length=2_000)]


def one_line(text: Any) -> Any:
    """The text with all white space as single spaces; anything else as it is."""
    return " ".join(text.split()) if isinstance(text, str) else text


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

    def shown(self) -> dict[str, Any]:
        """What stands in the prompt: what is empty is left out."""
        return {key: value for key, value in self.model_dump().items() if value not in (None, "", {}, [])}


class Evidence(BaseModel):
    """A passage of a case that bears the hypothesis."""

    model_config = ConfigDict(extra="forbid")

    case: str = Field(description="id of the case")
    turn: int = Field(ge=0, description="model turn the quote is from; 0 for the request")
    quote: str = Field(
        min_length=1,
        max_length=LONGEST_TEXT,
        description=f"verbatim from one message or call of the case, some words, at most {LONGEST_QUOTE} characters",
    )


class WrongTurn(BaseModel):
    """Where one case went wrong."""

    model_config = ConfigDict(extra="forbid")

    case: str = Field(description="id of the case")
    turn: int = Field(ge=1, description="first model turn that went wrong")


class Hypothesis(BaseModel):
    """One root cause that would explain cases of the cluster, and what to change if it is true."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    category: FaultKind = Field(description="kind of fault")
    part: Part = Field(description="part that is to blame; knowledge, model, judge, label: not the harness")
    path: str = Field(
        max_length=LONGEST_PATH,
        description="file blamed, or the file to be made; empty where no file is to blame",
    )
    hypothesis: str = Field(
        min_length=1,
        max_length=LONGEST_TEXT,
        description="root cause, one to three sentences, specific and refutable",
    )
    confidence: float = Field(ge=0, le=1)
    evidence: list[Evidence] = Field(min_length=1, max_length=8)
    first_wrong_turns: list[WrongTurn] = Field(
        max_length=200,
        description="of each case it explains, the first model turn that went wrong; cases unknown are left out",
    )
    changes: list[Sentence] = Field(
        max_length=MOST_CHANGES, description="changes to make, each one sentence that names its file"
    )
    refuted_by: str = Field(
        max_length=LONGEST_TEXT, description="an observation that would show the hypothesis to be wrong"
    )


class DiagnosisBrief(Hypothesis):
    """One hypothesis as the editor is shown it, amended by people, with the cluster that it is about.

    People write as much as they want, and none of what it quotes may be for models by now.
    """

    path: str
    hypothesis: str
    evidence: list[Evidence]
    first_wrong_turns: list[WrongTurn]
    changes: list[str]
    refuted_by: str
    cluster_name: str
    cluster_description: str


class DiagnosisOutput(BaseModel):
    """Why the cases of a cluster fail, and what to change."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    cluster_name: Annotated[str, BeforeValidator(one_line)] = Field(
        min_length=1, max_length=80, description="what fails, in a few words"
    )
    cluster_description: str = Field(
        max_length=LONGEST_TEXT, description="what the cases have in common, one or two sentences"
    )
    hypotheses: list[Hypothesis] = Field(
        min_length=1, max_length=MOST_HYPOTHESES, description="root causes, the likeliest first"
    )

    def briefs(self) -> list[DiagnosisBrief]:
        """Each hypothesis with the cluster that it is about, in order."""
        about = {"cluster_name": self.cluster_name, "cluster_description": self.cluster_description}
        return [DiagnosisBrief.model_validate({**about, **each.model_dump()}) for each in self.hypotheses]


INSTRUCTIONS = f"""\
You are the diagnostician of an LLM agent. The agent's weights never change. What can change is its \
harness: skills (a description that is always visible, a body that is loaded on demand), hooks (checks \
that make the agent retry, or rewrite or block a reply), prompt sections, and tools.

You get failure cases that were clustered together, and the harness. Find the root causes that explain \
them, and say what to change. The cases were made to fit: "[… 3,210 characters cut …]" and "[turns 4-9 \
left out]" say what is missing; of files that the cases did not use you may see only name and description.

How to work
1. Read each transcript turn by turn: which skill was loaded, which tools were called with what \
arguments, what came back, what the reply made of it. Find the first turn that went wrong. A wrong reply \
is often the consequence of a skill that was not chosen, or of a tool that was not called.
2. Compare with the files. Is there a skill for this question, and does its description have the words \
that users use? Do its steps call the right tool, and does it tell which fields to state? Is there a \
rule against the false promise, and is it so far up in a long list that the model overlooks it? Where a \
case ran on another version, was the file different then?
3. State one hypothesis for each root cause, the likeliest first; a second one only if it explains cases \
that the first does not, or explains them otherwise. At most {MOST_HYPOTHESES}.
4. Each blames exactly one part: skill, hook, prompt, tool; or, where no change of the harness would \
help: knowledge (the facts are nowhere), model (the harness is right, and can't be made clearer), judge \
(the reply was right, and the score is wrong) or label (what is expected of the case is wrong).
5. Prefer the smallest change that mends the whole kind of failure, and that leaves the rest alone. One \
more rule for every phrase makes the agent overlook older rules: when the list of rules is long, prefer \
a hook or a skill. Where the harness is not to blame, leave the changes empty.
6. Support each hypothesis with verbatim quotes from the cases: they are looked up, and what does not \
stand there counts for nothing. Say what would refute it. State low confidence when the cases do not \
share one cause.

Write every text for people (names, descriptions, hypothesis, changes) in the language that the \
harness's prompts are written in. Keep quotes in their own language.

{WARNING}

Answer with one JSON object of the given schema, and nothing else."""


def diagnosis_request(
    cases: Sequence[CaseBrief],
    files: Mapping[str, str],
    *,
    model: str,
    versions: Sequence[Mapping[str, Any]] = (),
    max_tokens: int = 4_000,
) -> ChatRequest:
    """The request to diagnose `cases`, as they are, on the harness `files` (path -> text).

    `versions` says which of the cases ran on other versions of the harness, and how those differ.
    """
    parts = [
        f"Diagnose these {len(cases)} failure cases.",
        fenced("cases", [case.shown() for case in cases]),
        "The harness as it is now:",
        fenced("files", dict(files)),
    ]
    if versions:
        parts += ["Some cases ran on other versions of it:", fenced("versions", list(versions))]
    return ChatRequest(
        model=model,
        messages=[
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": "\n\n".join(parts)},
        ],
        response_schema={"name": "DiagnosisOutput", "schema": DiagnosisOutput.model_json_schema()},
        parameters={"temperature": 0, "max_tokens": max_tokens},
    )
