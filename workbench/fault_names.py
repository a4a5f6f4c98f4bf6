"""Kinds of fault and blamed parts of a diagnosis in the reader's language."""

from django.utils.translation import gettext as _

from evolution.prompts.diagnosis import NOT_THE_HARNESS


def name_fault(category: str) -> str:
    """A kind of fault; one that is not known as it was written."""
    names = {
        "missing_instruction": _("instruction missing"),
        "conflicting_instructions": _("instructions in conflict"),
        "ignored_instruction": _("instruction not followed"),
        "wrong_skill": _("wrong skill loaded"),
        "missing_skill": _("skill missing or not found"),
        "wrong_tool": _("wrong tool called"),
        "wrong_arguments": _("wrong arguments of a call"),
        "tool_failure": _("tool failed"),
        "unverified_claim": _("claim without evidence"),
        "policy_violation": _("policy violated"),
        "incomplete_task": _("task left incomplete"),
        "lost_context": _("context lost"),
        "repetition": _("steps repeated"),
        "premature_end": _("ended too early"),
        "wrong_language": _("wrong language"),
        "format": _("wrong format"),
        "bad_label": _("label wrong"),
        "judge_error": _("judge wrong"),
        "missing_knowledge": _("knowledge missing"),
        "model_limit": _("limit of the model"),
        "other": _("another fault"),
    }
    return names.get(category, category)


def name_part(part: str) -> str:
    """What is to blame."""
    names = {
        "skill": _("skill"),
        "hook": _("hook"),
        "prompt": _("prompt"),
        "tool": _("tool"),
        "knowledge": _("knowledge"),
        "model": _("model"),
        "judge": _("judge"),
        "label": _("label"),
    }
    return names.get(part, part)


def list_parts() -> list[tuple[str, str]]:
    """What people can blame instead, with its name; what the harness has first."""
    harness = ("skill", "hook", "prompt", "tool")
    return [(part, name_part(part)) for part in (*harness, *sorted(NOT_THE_HARNESS))]


def list_outside_parts() -> list[tuple[str, str]]:
    """What is to blame where the harness is not."""
    return [(part, name_part(part)) for part in sorted(NOT_THE_HARNESS)]


def is_outside(part: str) -> bool:
    """Whether no change of the harness would mend it."""
    return part in NOT_THE_HARNESS


def explain_outside(part: str) -> str:
    """What it means that something else than the harness is to blame, and what can be done."""
    words = {
        "judge": _(
            "The reply was right and its score is wrong. Send the cases to the judge's calibration, so that the judge "
            "is measured on them."
        ),
        "label": _(
            "What is expected of the case is wrong. Correct the label: a new version of the dataset has it, under the "
            "same key."
        ),
        "knowledge": _(
            "The facts are nowhere to be had. Put the cluster aside until a tool or a document has them, or blame the "
            "part that could be given them."
        ),
        "model": _(
            "The harness is clear, and the model does not manage. Put the cluster aside until there is another."
        ),
    }
    return words.get(part, "")
