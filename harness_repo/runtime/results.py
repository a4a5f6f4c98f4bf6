"""What is done with a tool's answer before the model sees it: read, cleared of secrets, selected from, checked."""

import json

from harness_repo.format.json_schema import SchemaUnusable, find_violation
from harness_repo.format.selection import SelectionError, select
from harness_repo.format.tools import Tool
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.sources.failure import ToolFailure

# Of a result as JSON: what a model can still be shown.
MOST_CHARACTERS = 100_000
# Of an answer, before anything is selected from it.
MOST_ANSWER_CHARACTERS = 1_000_000


def clean_answer(raw: object) -> object:
    """The answer of a server as plain JSON values of bounded size and depth. Raises ToolFailure."""
    try:
        text = json.dumps(raw)
        if len(text) > MOST_ANSWER_CHARACTERS:
            raise ToolFailure(
                "malformed_result", f"the answer has more than {MOST_ANSWER_CHARACTERS} characters"
            )
        return read_json(text)
    except (ValueError, TypeError, RecursionError) as failure:
        raise ToolFailure("malformed_result", f"not JSON: {failure}") from failure


def select_result(tool: Tool, data: object, arguments: dict[str, object]) -> object:
    """What the tool's `select` finds in the data. Raises ToolFailure, "not_found" when it finds nothing."""
    try:
        found = select(tool.source["select"], data, arguments)
    except SelectionError as failure:
        raise ToolFailure("malformed_result", f"nothing can be selected: {failure}") from failure
    if found is None:
        raise ToolFailure("not_found")
    return found


def check_result(tool: Tool, result: object, *, is_live: bool = False) -> object:
    """The result, when it fits the tool's result_schema and, from a server, in size. Raises ToolFailure."""
    if is_live:
        size = len(json.dumps(result, ensure_ascii=False))
        if size > MOST_CHARACTERS:
            raise ToolFailure(
                "malformed_result", f"the result has {size} characters, at most {MOST_CHARACTERS}"
            )
    if tool.result_schema is None:
        return result
    try:
        wrong = find_violation(tool.result_schema, result)
    except SchemaUnusable as failure:
        wrong = str(failure)
    if wrong:
        raise ToolFailure("malformed_result", wrong)
    return result
