from django.test import Client

from evolution.loop.repositories import open_repository
from harness_repo.git.objects import Author
from tests.workbench.views.conftest import World

HTMX = {"HX-Request": "true"}
ROLE = "prompts/role.md"
BROKEN = "---\nname: [\n---\nx\n"


def edit(client: Client, world: World, deed: str = "edit/", **fields: str) -> str:
    world.proposal.refresh_from_db()
    values = {"path": ROLE, "content": "knows: q9\n", "expected_head": world.proposal.head_commit} | fields
    address = world.url(f"proposals/{world.proposal.pk}/{deed}")
    headers = HTMX if deed.endswith("check/") else {}
    return client.post(address, values, headers=headers, follow=True).content.decode()


def files(world: World) -> dict[str, bytes]:
    return open_repository(world.harness).files(world.proposal.branch)


def test_what_would_be_wrong_is_said_with_its_line_while_typing(world: World, developer: Client) -> None:
    shown = edit(developer, world, "edit/check/", path="skills/x/SKILL.md", content=BROKEN)

    assert "data-goto-line" in shown
    assert "<ins>" in shown or "+" in shown
    assert "skills/x/SKILL.md" not in files(world)


def test_the_change_is_shown_before_it_is_saved(world: World, developer: Client) -> None:
    shown = edit(developer, world, "edit/check/")

    assert "What saving would change" in shown
    assert files(world)[ROLE] == b"knows: q1 q2 q3\n"


def hook(name: str) -> str:
    check = "check:\n  kind: forbid\n  patterns: [x]\non_fail:\n  action: warn\n  message: no\n"
    return f"name: {name}\nevent: reply\n{check}"


def test_a_file_is_made_moved_and_deleted(world: World, developer: Client) -> None:
    one, two = "hooks/one.yaml", "hooks/two.yaml"
    edit(developer, world, path="", new_path=one, content=hook("one"), message="one more")
    assert files(world)[one] == hook("one").encode()
    assert open_repository(world.harness).log(world.proposal.branch, 1)[0].subject == "one more"

    edit(developer, world, path=one, new_path=two, content=hook("two"))
    assert files(world).get(two) == hook("two").encode()
    assert one not in files(world)

    edit(developer, world, path=two, content="", delete="1")
    assert two not in files(world)


def test_a_new_file_takes_no_other_ones_place(world: World, developer: Client) -> None:
    shown = edit(developer, world, path="", new_path=ROLE, content="mine\n")

    assert "is there already" in shown
    assert "mine" in shown
    assert files(world)[ROLE] == b"knows: q1 q2 q3\n"


def test_both_versions_are_shown_when_somebody_moved_the_branch(world: World, developer: Client) -> None:
    begun = world.proposal.head_commit
    repository = open_repository(world.harness)
    repository.commit(
        world.proposal.branch,
        {ROLE: b"knows: q1 q7\n"},
        parent=begun,
        author=Author("t", "t@example.org"),
        message="m",
    )

    shown = edit(developer, world, content="my words\n", expected_head=begun)

    assert "my words" in shown
    assert "q7" in shown
    assert "Somebody moved the branch while you typed" in shown
    head = repository.resolve(world.proposal.branch)
    assert f'name="expected_head" value="{head}"' in shown
    edit(developer, world, content="my words\n", expected_head=head)
    assert files(world)[ROLE] == b"my words\n"


def test_a_text_without_a_path_is_refused_and_kept(world: World, developer: Client) -> None:
    assert "my words" in edit(developer, world, path="", content="my words\n")


def test_a_viewer_checks_nothing(world: World, viewer: Client) -> None:
    address = world.url(f"proposals/{world.proposal.pk}/edit/check/")

    assert viewer.post(address, {"path": ROLE, "content": "x"}).status_code == 403


def test_each_problem_of_a_refused_edit_is_listed_once(world: World, developer: Client) -> None:
    shown = edit(developer, world, path="", new_path="skills/x/SKILL.md", content=BROKEN)

    assert shown.count("othing is saved yet; what stands against it is listed beside the field") == 1
    assert "it would add problems" not in shown
    assert shown.count("data-goto-line") == shown.count('<span class="pill bad">error</span>') > 0
    assert shown.index('id="edit-check"') < shown.index('id="paths-title"') < shown.index('id="edit-change"')


def test_while_typing_the_change_is_swapped_beside_the_problems(world: World, developer: Client) -> None:
    assert 'id="edit-change" hx-swap-oob="true"' in edit(developer, world, "edit/check/")
