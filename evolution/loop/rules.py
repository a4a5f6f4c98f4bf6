"""What a harness demands of its agent, rule by rule: for manifests, and for what a reviewer must not overlook.

Read from the files alone, tolerantly: nothing in a file raises. What a rule is worth is not judged here.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from evolution.loop.template_text import read_template_text
from harness_repo.format.frontmatter import read_front_matter
from harness_repo.format.harness import CONFIG
from harness_repo.format.skills import SKILL_FILE
from harness_repo.format.textfile import read_text
from harness_repo.format.yamlfile import YamlFile, as_list, as_mapping, read_yaml

# Alike from here on, a removed and an added rule are one that was changed (0-1, difflib's ratio).
ALIKE = 0.6
# More pairs of rules than this are not compared with each other, about a second's worth: what is beyond them is told
# as added and removed.
MOST_PAIRS = 6_000
LONGEST_COMPARED = 600

# A sentence outside a list is a rule when it says one of these.
OBLIGATION = re.compile(
    r"\b(?:must|never|always|only|shall|should|cannot|can't|don't|do\s+not|required?|forbidden|prohibited|"
    r"not\s+allowed|may\s+not|refuse|deny)\b|"
    r"必须|务必|一定要|不得|不要|不能|不许|不准|不可|不应|禁止|严禁|切勿|请勿|只能|仅限|一律|绝不|应当",
    re.IGNORECASE,
)

_MARKDOWN = MarkdownIt("commonmark").disable(["inline"])
_EXPRESSION = re.compile(r"{{(?:(?!{{).)*?}}", re.DOTALL)
# Struck through, or a comment: what stands there is taken back. Nothing is looked for beyond the next beginning.
_TAKEN_BACK = re.compile(
    r"~~(?:(?!~~).)+~~|<(s|del|strike)>(?:(?!</?(?:s|del|strike)>).)*</\1>|<!--(?:(?!<!--|-->).)*-->",
    re.DOTALL | re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2}")
_HOOK_FILE = re.compile(r"hooks/[^/]+\.ya?ml")
_TOOL_FILE = re.compile(r"tools/[^/]+\.ya?ml")


@dataclass(frozen=True)
class Rule:
    """One thing that the harness demands: a list item or a sentence of a prompt or skill, a hook, or a tool."""

    path: str
    # 1-based, of its first line
    line: int
    # on one line; of a hook or tool, what it does as a short text that is the same for the same rule
    text: str
    # "rule" (of a prompt section), "hook", "skill" or "tool"
    kind: str
    # of a hook or tool, by which it is known again; "description" of a skill's; else empty
    name: str = ""
    # the template's tags around it, such as {% if history %}, and ">" in a quotation; empty for what is always said
    condition: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What is the same in two versions of the rule that demand the same, wherever it stands."""
        return self.kind, self.name, f"{self.condition}\0{' '.join(self.text.split())}"


@dataclass(frozen=True)
class RuleChanges:
    """How the rules of two versions differ, by path and line; a rule that only moved is not in it."""

    added: list[Rule] = field(default_factory=list)
    removed: list[Rule] = field(default_factory=list)
    # the old and the new one
    changed: list[tuple[Rule, Rule]] = field(default_factory=list)


def list_rules(files: Mapping[str, bytes]) -> list[Rule]:
    """The rules of a harness's files, by path and line; files that are no part of a harness have none."""
    folders = {path.rpartition("/")[0] for path in files if path.rpartition("/")[2] == SKILL_FILE}
    return [rule for path in sorted(files) for rule in _rules_of(path, files[path], folders)]


def leave_out_unlisted(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files without the prompts that harness.yaml does not list, which no model is told; all if that is broken."""
    read = read_yaml(CONFIG, files[CONFIG])[0] if CONFIG in files else None
    if read is None:
        return dict(files)
    used = [as_mapping(entry).get("file") for entry in as_list(as_mapping(read.value).get("prompt"))]
    return {path: data for path, data in files.items() if not path.startswith("prompts/") or path in used}


def compare_rules(base: Mapping[str, bytes], head: Mapping[str, bytes]) -> RuleChanges:
    """What rules were added, removed and changed from base to head. Files that are the same are not read."""
    before = list_rules(_differing(base, head))
    after = list_rules(_differing(head, base))
    gone = _without(before, after)
    new = _without(after, before)
    changed = [*_pair_named(gone, new), *_pair_alike(gone, new)]
    old_ones, new_ones = {id(old) for old, _ in changed}, {id(new) for _, new in changed}
    return RuleChanges(
        [rule for rule in new if id(rule) not in new_ones],
        [rule for rule in gone if id(rule) not in old_ones],
        sorted(changed, key=lambda pair: (pair[1].path, pair[1].line)),
    )


def _differing(files: Mapping[str, bytes], others: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files that the other version has not, or not so; of skills, what says that their folder is one."""
    return {
        path: data if others.get(path) != data else b""
        for path, data in files.items()
        if others.get(path) != data or path.endswith("/" + SKILL_FILE)
    }


def _without(rules: Iterable[Rule], others: Iterable[Rule]) -> list[Rule]:
    """The rules that the others lack, as often as they lack them; first those that stay at their path are paired."""
    same_place = Counter((rule.path, rule.identity) for rule in others)
    anywhere = Counter(rule.identity for rule in others)
    left: list[Rule] = []
    for rule in rules:
        if same_place[rule.path, rule.identity] > 0:
            same_place[rule.path, rule.identity] -= 1
            anywhere[rule.identity] -= 1
        else:
            left.append(rule)
    return [rule for rule in left if not _take(anywhere, rule.identity)]


def _take(counts: Counter[tuple[str, str, str]], identity: tuple[str, str, str]) -> bool:
    counts[identity] -= 1
    return counts[identity] >= 0


def _pair_named(gone: Sequence[Rule], new: Sequence[Rule]) -> list[tuple[Rule, Rule]]:
    """Hooks, tools and descriptions that are known again by their file, or else by their name."""
    by_place = {(rule.kind, bool(rule.name), rule.path): rule for rule in new if rule.name}
    by_name = {(rule.kind, rule.name): rule for rule in new if rule.name and rule.name != "description"}
    pairs: dict[int, tuple[Rule, Rule]] = {}
    for old in gone:
        if not old.name:
            continue
        found = by_place.get((old.kind, True, old.path)) or by_name.get((old.kind, old.name))
        if found is not None:
            pairs.setdefault(id(found), (old, found))
    return list(pairs.values())


def _pair_alike(gone: Sequence[Rule], new: Sequence[Rule]) -> list[tuple[Rule, Rule]]:
    """The texts that are much alike: within a file first, then between files; the most alike first."""
    old_texts = [rule for rule in gone if not rule.name]
    new_texts = [rule for rule in new if not rule.name]
    by_path = _by_path(new_texts)
    pairs: list[tuple[Rule, Rule]] = []
    budget = MOST_PAIRS
    for path, gone_here in _by_path(old_texts).items():
        new_here = by_path.get(path, [])
        if len(gone_here) * len(new_here) <= budget:
            budget -= len(gone_here) * len(new_here)
            pairs += _match(gone_here, new_here)
    paired = {id(rule) for pair in pairs for rule in pair}
    old_left = [rule for rule in old_texts if id(rule) not in paired]
    new_left = [rule for rule in new_texts if id(rule) not in paired]
    return pairs + (_match(old_left, new_left) if len(old_left) * len(new_left) <= budget else [])


def _by_path(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        found[rule.path].append(rule)
    return found


def _match(gone: Sequence[Rule], new: Sequence[Rule]) -> list[tuple[Rule, Rule]]:
    alike = [(_likeness(old, fresh), old, fresh) for old in gone for fresh in new if old.kind == fresh.kind]
    pairs: list[tuple[Rule, Rule]] = []
    taken: set[int] = set()
    for likeness, old, fresh in sorted(alike, key=lambda one: (-one[0], one[1].line, one[2].line)):
        if likeness >= ALIKE and not taken & {id(old), id(fresh)}:
            taken |= {id(old), id(fresh)}
            pairs.append((old, fresh))
    return pairs


def _likeness(old: Rule, new: Rule) -> float:
    matcher = SequenceMatcher(None, old.text[:LONGEST_COMPARED], new.text[:LONGEST_COMPARED], autojunk=False)
    if matcher.real_quick_ratio() < ALIKE or matcher.quick_ratio() < ALIKE:
        return 0
    return matcher.ratio()


def _rules_of(path: str, data: bytes, skill_folders: set[str]) -> Iterator[Rule]:
    if not data:
        return
    if _HOOK_FILE.fullmatch(path):
        yield _hook_rule(path, data)
    elif _TOOL_FILE.fullmatch(path):
        yield _tool_rule(path, data)
    elif path.startswith("prompts/"):
        text, _ = read_text(path, data)
        yield from _text_rules(path, text or "", 1, "rule")
    elif path.endswith(".md") and _is_in_skill(path, skill_folders):
        yield from _skill_rules(path, data)


def _is_in_skill(path: str, folders: set[str]) -> bool:
    parts = path.split("/")[:-1]
    above = {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    return bool(above & folders) or path == SKILL_FILE


def _skill_rules(path: str, data: bytes) -> Iterator[Rule]:
    """When the skill is to be used, and what its body and the texts beside it demand."""
    text = read_text(path, data)[0] or ""
    front = read_front_matter(path, text)[0] if path.endswith(SKILL_FILE) else None
    if front is None:
        yield from _text_rules(path, text, 1, "skill")
        return
    description = as_mapping(front.read.value).get("description")
    if isinstance(description, str) and description.strip():
        line = front.read.line_of(("description",))
        yield Rule(path, line, " ".join(description.split()), "skill", "description")
    yield from _text_rules(path, front.body, front.body_line, "skill")


def _hook_rule(path: str, data: bytes) -> Rule:
    """Event, condition, check and what a failure leads to, in one line; of a broken file its text."""
    read, values, name = _read_part(path, data)
    if read is None:
        return Rule(path, 1, _flat(data), "hook", name)
    fail = as_mapping(values.get("on_fail"))
    parts = [f"on {values.get('event')}"]
    if values.get("when") is not None:
        parts.append(f"when {_compact(values['when'])}")
    parts += [f"check {_compact(values.get('check'))}", f"else {_compact(fail)}"]
    return Rule(path, read.line_of(("check",)), f"{name}: {', '.join(parts)}", "hook", name)


def _tool_rule(path: str, data: bytes) -> Rule:
    """What the model may call, with what, and where the answer comes from; of a broken file its text."""
    read, values, name = _read_part(path, data)
    if read is None:
        return Rule(path, 1, _flat(data), "tool", name)
    rest = {key: values[key] for key in sorted(values) if key not in {"name", "description"}}
    text = f"{name}: {' '.join(str(values.get('description', '')).split())} {_compact(rest)}"
    return Rule(path, read.line_of(("name",)), text, "tool", name)


def _read_part(path: str, data: bytes) -> tuple[YamlFile | None, dict[str, Any], str]:
    """The file as YAML, None when it is none; and the part's name, or else its file's."""
    read, _ = read_yaml(path, data)
    stem = path.rpartition("/")[2].rpartition(".")[0]
    values = as_mapping(read.value) if read is not None else {}
    name = values.get("name")
    return (read if values else None), values, name if isinstance(name, str) and name else stem


def _compact(value: object) -> str:
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    )


def _flat(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())


def _text_rules(path: str, text: str, first_line: int, kind: str) -> Iterator[Rule]:
    """The list items of a Markdown text, and its other sentences that oblige; what a template repeats is data."""
    read = read_template_text(text)
    for token, in_list, is_quoted in _inline_tokens(_MARKDOWN.parse(read.shown)):
        first, last = token.map or (0, 1)
        # An item is one rule; outside of lists each line is one.
        lines = [(first, token.content)] if in_list else enumerate(token.content.split("\n"), first)
        for number, line in lines:
            if not _is_said(line) or not (in_list or OBLIGATION.search(line)):
                continue
            end = last if in_list else number + 1
            condition = next((read.around[at] for at in range(number, end) if at in read.around), "")
            condition = f"{condition} >".strip() if is_quoted else condition
            yield Rule(path, first_line + number, " ".join(line.split()), kind, condition=condition)


def _inline_tokens(tokens: Iterable[Token]) -> Iterator[tuple[Token, bool, bool]]:
    """The texts that are no headings, and whether they stand in a list, and in a quotation."""
    depth = {"list_item": 0, "blockquote": 0, "heading": 0}
    for token in tokens:
        block = token.type.removesuffix("_open").removesuffix("_close")
        if block in depth:
            depth[block] += token.nesting
        elif token.type == "inline" and not depth["heading"]:
            yield token, depth["list_item"] > 0, depth["blockquote"] > 0


def leave_out_taken_back(text: str) -> str:
    """The text without what is struck through in it or commented out."""
    return " ".join(_TAKEN_BACK.sub(" ", text).split())


def _is_said(text: str) -> bool:
    """Whether there are words in it beside what a template puts in and what is taken back."""
    return bool(_WORD.search(leave_out_taken_back(_EXPRESSION.sub("", text))))
