"""Links that begin a pull request, as the forges document them."""

import pytest

from evolution.loop.forges import compare_link


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("https://github.com/o/r.git", "https://github.com/o/r/compare/main...proposal/7-x?expand=1"),
        ("git@github.com:o/r.git", "https://github.com/o/r/compare/main...proposal/7-x?expand=1"),
        ("ssh://git@github.com:22/o/r", "https://github.com/o/r/compare/main...proposal/7-x?expand=1"),
        (
            "https://gitlab.example.com/group/sub/r.git",
            (
                "https://gitlab.example.com/group/sub/r/-/merge_requests/new?merge_request%5Bsource_branch%5D="
                "proposal%2F7-x&merge_request%5Btarget_branch%5D=main"
            ),
        ),
        (
            "git@bitbucket.org:o/r.git",
            "https://bitbucket.org/o/r/pull-requests/new?source=proposal%2F7-x&dest=main",
        ),
        ("https://codeberg.org/o/r", "https://codeberg.org/o/r/compare/main...proposal/7-x"),
        ("https://git.example.com/o/r", ""),
        ("https://notgithub.com/o/r", ""),
        ("/srv/git/github.com/r.git", ""),
        ("https://me:secret@github.com/o/r", ""),
        ("", ""),
    ],
)
def test_a_known_forge_has_a_page_that_compares(address: str, link: str) -> None:
    assert compare_link(address, "main", "proposal/7-x") == link
