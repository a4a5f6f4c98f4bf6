"""Beside stage 4: asks the editor for a draft, and takes only one that could go on the branch.

Whatever is wrong with an answer, its form, edits that don't fit, problems they would add or places that are not the
editor's, is told to the model once, all together. No git and no states here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.conf import settings
from django.utils.translation import gettext as _

from evolution.errors import ModelOutputError
from evolution.loop.asking import About, consult
from evolution.loop.draft_material import Files, choose_cases, choose_files
from evolution.loop.draft_rules import Wanted, find_draft_faults
from evolution.loop.edits import EditRefused, find_edit_faults
from evolution.loop.files_in_play import readable_files
from evolution.loop.halves import coming_round
from evolution.models import Diagnosis
from evolution.ports import NamedModel
from evolution.prompts.diagnosis import DiagnosisBrief
from evolution.prompts.draft import DraftOutput, Earlier, draft_request
from evolution.prompts.feedback import own_words
from evolution.prompts.file_edits import BadEdit, apply_edits
from harness_repo.format.harness import CONFIG
from harness_repo.runtime.chat import ChatRequest

Tree = Mapping[str, bytes]

# Of what is wrong with a draft, in characters: people and the model read it.
LONGEST_FAULT = 6_000


@dataclass(frozen=True)
class Ground:
    """What a draft is made on: files the proposal starts from, and those of its branch (the same for a first draft)."""

    base: Tree
    before: Tree
    # what reviewers asked; see Earlier
    feedback: str = ""
    lost: str = ""

    def original(self) -> dict[str, str | None]:
        """The files that the branch changes, as text, as they are in the base; None for those it made."""
        old, new = readable_files(self.base), readable_files(self.before)
        return {path: old.get(path) for path in sorted({*old, *new}) if old.get(path) != new.get(path)}


@dataclass(frozen=True)
class Draft:
    """An answer that was taken: what it says, what to commit, and the dataset keys of the cases it was shown."""

    output: DraftOutput
    edits: dict[str, bytes | None]
    keys: list[str] = field(default_factory=list)


@dataclass
class Checker:
    """Says what is wrong with an answer, and remembers what it made of the last one."""

    ground: Ground
    files: Files
    wanted: Wanted
    edits: dict[str, bytes | None] = field(default_factory=dict)
    fault: str = ""

    def __call__(self, output: DraftOutput) -> str:
        """The faults, one a line; "" for none. An answer without edits says that there is nothing to do."""
        fault = "\n".join(self._find_faults(output)) if output.edits else ""
        if len(fault) > LONGEST_FAULT:
            fault = f"{fault[:LONGEST_FAULT]}\n[… {len(fault) - LONGEST_FAULT:,} characters cut …]"
        self.fault = fault
        return fault

    def _find_faults(self, output: DraftOutput) -> list[str]:
        base, before = self.ground.base, self.ground.before
        try:
            self.edits = apply_edits(before, output.edits)
        except BadEdit as failure:
            return [str(failure)]
        unseen = [
            _("%(path)s was not shown, so it can't be replaced: use search_replace") % {"path": edit.path}
            for edit in output.edits
            if edit.action == "replace" and edit.path in self.files.left_out
        ]
        faults = find_edit_faults(base, before, self.edits)
        return [*unseen, *(faults or find_draft_faults(base, before, self.edits, self.wanted))]


def ask_editor(
    diagnosis: Diagnosis, brief: DiagnosisBrief, ground: Ground, model: NamedModel, about: About
) -> Draft:
    """Have the model draft the change of a diagnosis on the ground.

    Raises LoopError: EditRefused when it has nothing to change, or its draft is of no use after one repair. What was
    asked is kept then too, so not in a transaction of the caller's.
    """
    original = ground.original()
    texts = (brief.path, brief.hypothesis, *brief.changes, ground.feedback)
    words, comments = own_words(ground.feedback, CONFIG)
    named = "\n".join([*texts, ground.lost])
    files = choose_files(readable_files(ground.before), named, original, settings.DRAFT_TOKENS)
    cases = choose_cases(diagnosis)
    request = draft_request(
        brief,
        files.shown,
        model=model.name,
        earlier=Earlier(ground.feedback, original, ground.lost),
        cases=cases.briefs,
        left_out=files.left_out,
    )
    checker = Checker(ground, files, Wanted(brief.path, (*brief.changes, *words), comments))
    shown = {
        "round": coming_round(diagnosis.harness),
        "cases": cases.ids,
        "keys": cases.keys,
        "files": sorted(files.shown),
        "cut": [*cases.cuts, *files.cuts()],
    }
    output = _consult(model, request, replace(about, shown=shown), checker)
    if not output.edits:
        text = (
            _("nothing to change in the draft for this feedback: %(summary)s")
            if original
            else _("nothing to change in the harness for this diagnosis: %(summary)s")
        )
        raise EditRefused(text % {"summary": output.summary})
    return Draft(output, checker.edits, cases.keys)


def _consult(model: NamedModel, request: ChatRequest, about: About, checker: Checker) -> DraftOutput:
    """The answer; where its last fault was one of the draft itself, that is what the error says."""
    try:
        return consult(model, request, DraftOutput, about, checker)[0]
    except ModelOutputError as failure:
        if checker.fault and str(failure).endswith(checker.fault):
            raise EditRefused(checker.fault) from failure
        raise
