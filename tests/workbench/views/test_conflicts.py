from django.test import Client

from evolution.loop.authors import author_of
from evolution.loop.repositories import open_repository
from evolution.models import Release, Step
from evolution.states import ReleaseKind
from tests.evolution.measured import DEV, make_proposal, teach
from tests.workbench.views.conftest import World


def test_confirmed_proposals_that_clash_are_shown_by_file_and_line(world: World, developer: Client) -> None:
    Step.objects.filter(pk=world.step.pk).update(state="rolled_back")
    for number, text in enumerate((b"knows: <one>\n", b"knows: two\n")):
        make_proposal(world.harness, text, title=f"Number {number}")
    answer = developer.get(world.url("steps/"))
    conflict = answer.context["conflict"]
    assert [(file.path, file.kind) for file in conflict.files] == [("prompts/role.md", "content")]
    assert (conflict.proposal.title, [p.title for p in conflict.before]) == ("Number 1", ["Number 0"])
    page = answer.content.decode()
    assert "knows: &lt;one&gt;" in page
    assert "both change the same lines" in page


def test_proposals_that_fit_show_no_conflict(world: World, developer: Client) -> None:
    Step.objects.filter(pk=world.step.pk).update(state="rolled_back")
    make_proposal(world.harness, teach(1))
    make_proposal(world.harness, b"hi\n", path="prompts/more.md")
    assert developer.get(world.url("steps/")).context["conflict"] is None


def test_a_step_that_no_longer_fits_to_what_is_live_says_where(world: World, developer: Client) -> None:
    repository = open_repository(world.harness)
    edits = {"prompts/role.md": b"knows: something else\n"}
    main = repository.resolve("main")
    commit = repository.commit("main", edits, parent=main, author=author_of(DEV), message="m")
    repository.tag("release/2", commit, "m", author_of(DEV))
    Release.objects.create(
        harness=world.harness, number=2, kind=ReleaseKind.PROMOTION, commit=commit, tag="release/2", actor="x"
    )
    answer = developer.get(world.url("steps/1/"))
    assert answer.context["conflict"].files[0].hunks[0].ours == "knows: something else\n"
    assert 'id="conflicts"' in answer.content.decode()


def test_a_confirmed_proposal_says_whether_it_still_merges(world: World, developer: Client) -> None:
    fits = make_proposal(world.harness, b"hi\n", path="prompts/more.md")
    clashes = make_proposal(world.harness, b"knows: <one>\n")
    repository = open_repository(world.harness)
    main = repository.resolve("main")
    edits = {"prompts/role.md": b"knows: something else\n"}
    repository.commit("main", edits, parent=main, author=author_of(DEV), message="m")

    pages = [developer.get(world.url(f"proposals/{p.pk}/")) for p in (fits, clashes)]
    listed = developer.get(world.url("proposals/"))

    assert "merges with the live version" in pages[0].content.decode()
    assert "which has moved on since the draft" in pages[0].content.decode()
    assert pages[1].context["conflict"].files[0].hunks[0].ours == "knows: something else\n"
    assert "knows: &lt;one&gt;" in pages[1].content.decode()
    assert listed.context["conflicting"] == {clashes.pk}


def test_a_proposal_that_no_step_can_take_is_not_checked(world: World, developer: Client) -> None:
    taken = world.step.proposals.get()
    assert developer.get(world.url(f"proposals/{taken.pk}/")).context["forecast"] is None


def make_clash(world: World) -> tuple[int, int]:
    Step.objects.filter(pk=world.step.pk).update(state="rolled_back")
    one, two = (
        make_proposal(world.harness, text, title="Same") for text in (b"knows: one\n", b"knows: two\n")
    )
    return one.pk, two.pk


def test_clashing_proposals_are_told_apart_by_number(world: World, developer: Client) -> None:
    one, two = make_clash(world)
    page = developer.get(world.url("steps/")).content.decode()
    assert f">#{two} Same</a> changes the same lines" in page
    assert f">#{one} Same</a>" in page


def test_unticking_what_clashes_clears_the_conflict(world: World, developer: Client) -> None:
    one, two = make_clash(world)
    headers = {"HX-Request": "true", "HX-Target": "chosen"}

    both = developer.get(world.url(f"steps/?chosen=1&proposals={one}&proposals={two}"), headers=headers)
    alone = developer.get(world.url(f"steps/?chosen=1&proposals={one}"), headers=headers)
    none = developer.get(world.url("steps/?chosen=1&proposals=x"), headers=headers)

    assert alone.content.decode().lstrip().startswith('<div id="chosen">')
    assert "disabled" in both.content.decode()
    assert f"#{two} does not fit" in both.content.decode()
    assert "disabled" not in alone.content.decode()
    assert "They fit together" in alone.content.decode()
    assert 'id="conflicts"' not in alone.content.decode()
    assert "disabled" in none.content.decode()
    assert "Choose at least one" in none.content.decode()


def test_a_step_of_proposals_that_clash_is_refused_with_the_reason(world: World, developer: Client) -> None:
    one, two = make_clash(world)

    answer = developer.post(world.url("steps/start/"), {"proposals": [one, two]}, follow=True)

    assert Step.objects.count() == 1
    assert f"#{two} does not fit to #{one}" in answer.content.decode()
    assert [proposal.pk for proposal in answer.context["chosen"]] == [one, two]
