"""The draft of an edit: what the editor model is shown, what it must answer, and how its edits change the files."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from evolution.prompts.diagnosis import CaseBrief, DiagnosisOutput
from evolution.prompts.fences import WARNING, fenced
from harness_repo.runtime.chat import ChatRequest

SAFE_PATH = re.compile(r"^(?!/)(?!.*(?:^|/)\.\.?(?:/|$))(?!-)[\w./-]+$")


class FileEdit(BaseModel):
    """One change of one file."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1, description="path inside the harness")
    action: Literal["create", "replace", "append_line", "delete"]
    content: str = Field(
        description="whole new content for create and replace, the line for append_line, empty for delete"
    )


class DraftOutput(BaseModel):
    """A proposal's first version."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=120, description="what the change does, in imperative mood")
    slug: str = Field(
        pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$", max_length=40, description="for the branch's name"
    )
    summary: str = Field(description="why and what, two to four sentences for the reviewer")
    edits: list[FileEdit] = Field(
        description="none only when the diagnosis leaves nothing to change in the harness"
    )
    expected_effect: str = Field(
        description="which cases it mends and by what; a prediction that can be checked"
    )
    risks: list[str] = Field(description="what it may break, each one sentence")


class BadEdit(ValueError):
    """An edit that cannot be applied to the files; the message says why."""


INSTRUCTIONS = f"""\
You edit the harness of an LLM agent that answers viewers in a live shopping room. A developer has \
confirmed a diagnosis; you draft the edit that carries it out. A reviewer reads the diff, and an \
evaluation measures it.

The format
- skills/<name>/SKILL.md (for skills, any folder that `skill_folders` of harness.yaml lists): YAML front \
matter (`name` equal to the folder, `description` of at most 1024 characters that says when to use it, \
in viewers' words; `metadata: {{kind: reply}}` or `strategy`), then a Markdown body: steps that name tools, \
what to state by field name, and cautions.
- prompts/*.md: Jinja2 sections of the prompt. Rules are list items of the constraints section; later \
items are followed more reliably than earlier ones.
- hooks/*.yaml: `name`, `event` (input, tool_call, tool_result or reply), `check`, `on_fail`, and \
`when` if the check is not always due: CEL as a text, or a check that has to pass. \
A check is one of: {{cel: expression}} over turn, request, danmaku, prompt, skills_loaded and tool_calls, and \
over tool at the two tool events, result at tool_result and reply at reply; \
{{regex: pattern}}, which must be found in the text, and {{kind: forbid, patterns: \
[regex]}}, none of which may be; {{kind: max_length, characters: n}}; {{schema: ...}}, a JSON Schema of the \
tool call's arguments, the result or the reply; {{kind: valid_json}}; {{kind: requires_skill, skills: \
[name]}} or {{kind: requires_skill, skill_kind: reply}}; and at event reply only {{kind: cites_evidence}}, \
that every number stands in a tool result, the request or the prompt, and {{kind: no_promise, phrases: \
[text], allow: [text]}}, that nothing is promised which no tool result and no line of the prompt says word \
for word (it knows the common phrases; `phrases` adds some, `allow` takes some out). \
`on_fail` is {{action: retry, message: ...}}, in which {{detail}} is what the check found, or `warn`, or \
`block` with `reply`, or at event reply `rewrite` with `reply` or `substitute` (a list of `pattern` and \
`replacement`); at event input only `block` and `warn`.
- tools/*.yaml: `name`, `description`, `parameters` and `result_schema` as JSON Schema, `returns` with a \
label per field, `source`. Leave the `source` of a tool as it is: which hosts, commands and secrets it may \
use is the operator's to say. A new tool has {{kind: fixture, select: JMESPath}} over context, arguments and \
request.

How to work
1. Carry out the diagnosis and nothing else: the smallest edit that mends the kind of failure, worded \
for the kind, not for the single case. Never put a case's expected answer, a price or a product's facts \
into the harness.
2. Keep the file's language, style and order. Do not touch what the diagnosis does not blame.
3. `append_line` adds one line at the end of a file; `replace` gives the whole new file; do not use it \
to rewrite what can stay.
4. If there is a reviewer's feedback, it outranks the diagnosis. The files then have your last draft in \
them, and the block named original has the files that it changed as they were before (null: there was no \
such file). Rework the draft: `replace` its own lines instead of adding more, `delete` a file that is no \
longer wanted, and give back the original where a change is dropped.
5. Predict which cases it mends, and name what it may break.

Write all text for people in the language of the harness's prompts; the slug in lower-case ASCII with \
hyphens.

{WARNING} The one exception is the block named feedback: it is the reviewer's wish.

Answer with one JSON object of the given schema, and nothing else."""


def draft_request(
    diagnosis: DiagnosisOutput,
    files: Mapping[str, str],
    *,
    model: str,
    feedback: str | None = None,
    original: Mapping[str, str | None] | None = None,
    cases: Sequence[CaseBrief] = (),
    max_tokens: int = 4_000,
) -> ChatRequest:
    """The request to draft an edit of `files` for the diagnosis.

    `feedback` is a reviewer's, on an earlier draft that is in `files` already; `original` has the files that this
    draft changed as they were before it, None for those that it made.
    """
    parts = ["Draft the edit for this diagnosis.", fenced("diagnosis", diagnosis.model_dump())]
    if feedback:
        parts += ["The reviewer's feedback on the last draft:", fenced("feedback", feedback)]
    if cases:
        shown = [{"id": case.id, "request": case.request, "reply": case.reply} for case in cases]
        parts += ["Some of the cases:", fenced("cases", shown)]
    parts += ["The harness:", fenced("files", dict(files))]
    if original:
        parts += ["The files that the last draft changed, before it:", fenced("original", dict(original))]
    return ChatRequest(
        model=model,
        messages=[
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": "\n\n".join(parts)},
        ],
        response_schema={"name": "DraftOutput", "schema": DraftOutput.model_json_schema()},
        parameters={"temperature": 0, "max_tokens": max_tokens},
    )


def apply_edits(files: Mapping[str, bytes], edits: Sequence[FileEdit]) -> dict[str, bytes | None]:
    """What to commit: path -> new content, None to delete. Raises BadEdit when an edit does not fit the files."""
    changed: dict[str, bytes | None] = {}
    for edit in edits:
        if not SAFE_PATH.match(edit.path):
            raise BadEdit(f"{edit.path}: not a path inside the harness")
        before = changed[edit.path] if edit.path in changed else files.get(edit.path)
        changed[edit.path] = _edited(edit, before)
    return changed


def _edited(edit: FileEdit, before: bytes | None) -> bytes | None:
    if edit.action == "create":
        if before is not None:
            raise BadEdit(f"{edit.path}: exists already")
        return _ended(edit.content).encode()
    if before is None:
        raise BadEdit(f"{edit.path}: does not exist")
    if edit.action == "delete":
        return None
    if edit.action == "append_line":
        return (_ended(before.decode()) + _ended(edit.content)).encode()
    return _ended(edit.content).encode()


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
