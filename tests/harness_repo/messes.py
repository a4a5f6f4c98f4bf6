"""A repository of skills with one of each mess that real ones have, and what has to be found where."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

GOOD = b"---\nname: good\ndescription: A sound skill.\n---\nDo it.\n"

EXPLODING = "\n".join(
    [
        "  a: &a [x, x]",
        *(f"  {new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in ("ab", "bc", "cd")),
    ]
)


def skill(name: str, rest: str = "", body: str = "Do it.") -> bytes:
    return f"---\nname: {name}\ndescription: About {name}.\n{rest}---\n{body}\n".encode()


# Path -> content.
FILES: dict[str, bytes] = {
    "SKILL.md": skill("at-root"),
    "skills/good/SKILL.md": GOOD,
    "skills/good/references/more.md": b"More.\n",
    "skills/colon/SKILL.md": b"---\nname: colon\ndescription: Use it: now\n---\nDo it.\n",
    "skills/tab/SKILL.md": skill("tab", "metadata:\n\tauthor: A\n"),
    "skills/space/SKILL.md": b" " + skill("space"),
    "skills/plain/SKILL.md": b"# Only a title\n",
    "skills/open/SKILL.md": b"---\nname: open\ndescription: D.\n\n# Title\n\nDo it.\n",
    "skills/fence/SKILL.md": b"---\nname: fence\ndescription: D.\n----\nDo it.\n",
    "skills/rule/SKILL.md": skill("rule", body="A\n\n---\n\nB"),
    "skills/bom/SKILL.md": b"\xef\xbb\xbf" + skill("bom"),
    "skills/crlf/SKILL.md": skill("crlf").replace(b"\n", b"\r\n"),
    "skills/wide/SKILL.md": skill("wide").decode().encode("utf-16"),
    "skills/zero/SKILL.md": skill("zero", body="a\nb\0c"),
    "skills/latin/SKILL.md": skill("latin", body="caf\xe9").decode().encode("latin-1"),
    "skills/wordy/SKILL.md": f"---\nname: wordy\ndescription: {'x' * 1025}\n---\nDo it.\n".encode(),
    "skills/folder/SKILL.md": skill("other-name"),
    "skills/good-copy/SKILL.md": GOOD,
    "skills/商品/SKILL.md": skill("商品"),
    "skills/under_score/SKILL.md": skill("under_score"),
    "skills/lfs/SKILL.md": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "skills/Case/SKILL.md": skill("case"),
    "skills/case/notes.md": b"Notes.\n",
    "skills/long/SKILL.md": skill("long", body="word " * 14_800),
    "skills/laughs/SKILL.md": skill("laughs", f"metadata:\n{EXPLODING}\n"),
    "skills/empty/SKILL.md": b"---\nname: empty\ndescription: D.\n---\n",
    "skills/lower/skill.md": skill("lower"),
    "skills/good/extra/SKILL.md": skill("extra"),
    "skills/good/assets/template/SKILL.md": b"no skill: a template\n",
    "skills/tools/SKILL.md": skill("tools", "allowed-tools: [Bash]\n"),
    "skills/number/SKILL.md": skill("number", "metadata: {version: 1.0}\n"),
    "skills/unknown/SKILL.md": skill("unknown", "color: red\n"),
    "skills/huge/SKILL.md": skill("huge", body="x" * 600_000),
    "plugins/one/skills/deep/SKILL.md": skill("deep"),
}

LINKS = {
    "skills/inside": "good",
    "skills/outside": "../../elsewhere",
    "skills/absolute": "/etc/passwd",
    "skills/dangling": "nowhere",
    "skills/round": "round",
}

# What every reader has to find: path, code and line.
EXPECTED = {
    ("harness.yaml", "config_missing", 0),
    ("SKILL.md", "skill_at_root", 0),
    ("skills/colon/SKILL.md", "yaml_syntax", 3),
    ("skills/tab/SKILL.md", "yaml_syntax", 5),
    ("skills/space/SKILL.md", "front_matter_position", 1),
    ("skills/plain/SKILL.md", "front_matter_missing", 1),
    ("skills/open/SKILL.md", "front_matter_unclosed", 1),
    ("skills/fence/SKILL.md", "front_matter_fence", 4),
    ("skills/bom/SKILL.md", "byte_order_mark", 1),
    ("skills/crlf/SKILL.md", "line_ends", 1),
    ("skills/wide/SKILL.md", "encoding", 1),
    ("skills/zero/SKILL.md", "nul_byte", 6),
    ("skills/latin/SKILL.md", "encoding", 5),
    ("skills/wordy/SKILL.md", "schema", 3),
    ("skills/folder/SKILL.md", "skill_folder", 2),
    ("skills/good-copy/SKILL.md", "skill_folder", 2),
    ("skills/good-copy/SKILL.md", "duplicate_name", 2),
    ("skills/商品/SKILL.md", "skill_name", 2),
    ("skills/under_score/SKILL.md", "skill_name", 2),
    ("skills/lfs/SKILL.md", "lfs_pointer", 1),
    ("skills/Case/SKILL.md", "skill_folder", 2),
    ("skills/case/notes.md", "case_clash", 0),
    ("skills/long/SKILL.md", "skill_long", 5),
    ("skills/laughs/SKILL.md", "yaml_limit", 7),
    ("skills/empty/SKILL.md", "skill_body_empty", 2),
    ("skills/lower/skill.md", "skill_file_name", 0),
    ("skills/good/extra/SKILL.md", "skill_nested", 0),
    ("skills/good/assets/template/SKILL.md", "skill_nested", 0),
    ("skills/tools/SKILL.md", "allowed_tools", 4),
    ("skills/number/SKILL.md", "schema", 4),
    ("skills/unknown/SKILL.md", "unknown_key", 4),
    ("skills/huge/SKILL.md", "too_large", 0),
    ("skills/inside", "link_not_followed", 0),
    ("skills/outside", "link_outside", 0),
    ("skills/absolute", "link_outside", 0),
    ("skills/dangling", "link_dangling", 0),
    ("skills/round", "link_dangling", 0),
}

# As committed: submodules with and without an entry in .gitmodules.
GITMODULES = b'[submodule "known"]\n\tpath = vendor/known\n\turl = https://example.org/known.git\n'
SUBMODULES = {"vendor/known": "1" * 40, "vendor/lost": "2" * 40}
EXPECTED_COMMITTED = EXPECTED | {
    ("vendor/known", "submodule", 0),
    ("vendor/lost", "submodule_unregistered", 0),
}

# Not read: no front matter, content that is none, a template, the second of one name.
UNREAD = {"plain", "zero", "lfs", "laughs", "huge", "template"}
READ = {
    "at-root", "good", "colon", "tab", "space", "open", "fence", "rule", "bom", "crlf", "wide", "latin", "wordy",
    "other-name", "商品", "under_score", "case", "long", "empty", "lower", "extra", "tools", "number", "unknown",
    "deep",
}  # fmt: skip


def write_messes(folder: Path) -> None:
    """Put files and links into a folder."""
    write_files(folder, FILES)
    for path, target_text in LINKS.items():
        (folder / path).symlink_to(target_text)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def commit_messes(folder: Path) -> None:
    """Make a git repository with a working tree of them, and two submodules that are not checked out."""
    write_messes(folder)
    (folder / ".gitmodules").write_bytes(GITMODULES)
    run_git_in(folder, "init", "--quiet", "--initial-branch=trunk")
    run_git_in(folder, "add", "--all")
    for path, sha in SUBMODULES.items():
        run_git_in(folder, "update-index", "--add", "--cacheinfo", f"160000,{sha},{path}")
    run_git_in(folder, "commit", "--quiet", "--message", "messes")


def run_git_in(folder: Path, *arguments: str) -> None:
    identity = {
        f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
