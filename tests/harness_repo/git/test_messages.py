import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_repo.git.messages import message_with_trailers, read_trailers


def ask_git(message: str) -> list[str]:
    command = ["git", "-c", "core.commentChar=auto", "interpret-trailers", "--parse", "--no-divider"]
    out = subprocess.run(command, input=message.encode(), capture_output=True, check=True).stdout
    return out.decode().splitlines()


@pytest.mark.parametrize(
    "message",
    [
        "Subject",
        "主题\n\n正文",
        "Subject\n\nBody\n\nCluster: 3",
        "Subject: not a trailer",
        "a\n\nb: c\nplain words",
    ],
)
def test_git_reads_the_trailers_that_are_put_under_a_message(message: str) -> None:
    text = message_with_trailers(message, {"Proposal": 7, "Merged": [1, "x\ny"]})
    assert ask_git(text)[-3:] == ["Proposal: 7", "Merged: 1", "Merged: x y"]
    assert [f"{key}: {value}" for key, value in read_trailers(text)] == ask_git(text)


def test_a_message_keeps_the_trailers_it_has() -> None:
    text = message_with_trailers("S\n\nCluster: 3\n", {"Proposal": 7})
    assert text == "S\n\nCluster: 3\nProposal: 7\n"


def test_without_trailers_a_message_is_as_it_was() -> None:
    assert message_with_trailers("S\n\nBody\n\n", {}) == "S\n\nBody\n"
    assert read_trailers("Key: value") == []


@given(st.text(max_size=30), st.text(max_size=20))
def test_a_value_never_makes_a_second_line(message: str, value: str) -> None:
    text = message_with_trailers(message or "S", {"Proposal": value})
    assert text.rstrip("\n").split("\n")[-1].startswith("Proposal:")


@pytest.mark.parametrize("key", ["", "a b", "-x", "a:b", "键"])
def test_a_key_that_git_would_not_read_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="key"):
        message_with_trailers("S", {key: 1})


def test_a_trailer_ends_where_git_ends_it() -> None:
    assert read_trailers("subject\n\nKey: one\u2028two\x85three\n") == [("Key", "one\u2028two\x85three")]
