"""Exchanges a harness's versions with the repository elsewhere that HARNESS_REMOTES names."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.actions.branches import push_proposals
from evolution.actions.remotes import advance_harness, fetch_harness, pack_harness, push_harness
from evolution.actors import SYSTEM
from evolution.errors import LoopError
from evolution.loop.proposal_flags import flag_proposal
from evolution.loop.pull_requests import PullRequest, write_pull_request
from evolution.models import Harness
from harness_repo.git.errors import HarnessRepoError

FAILED = 1
# The form of options, as they come from the command line.
Options = Mapping[str, Any]


class Command(BaseCommand):
    """Fetches first, then advances, then pushes, then packs, as far as asked."""

    help = (
        "Fetch a harness's branches from its remote (HARNESS_REMOTES), make the remote's branch live, or push. What is "
        "fetched lands on refs/remotes/NAME/; our main does not move without --advance, and what others added to the "
        "branches of proposals under review is taken, to be looked at. Our main goes with the remote's `branch` as "
        "HARNESS_REMOTES names it, else the one that its HEAD stands for, else main."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("harness")
        parser.add_argument("--fetch", action="store_true", help="bring what the remote has")
        advance = "fetch, and make the remote's branch live if it builds on our main"
        parser.add_argument("--advance", action="store_true", help=advance)
        push = (
            "push these branches and tags, NAME:NAME_THERE under another name; "
            "without any: main and the tags of all releases"
        )
        parser.add_argument("--push", nargs="*", metavar="REF[:REF_THERE]", help=push)
        proposals = "push the branches of these proposals, by number; without any: of all under review"
        parser.add_argument("--proposals", nargs="*", type=int, metavar="ID", help=proposals)
        text = "print the text of a pull request for this proposal: title, empty line, body"
        parser.add_argument("--pull-request", type=int, metavar="ID", help=text)
        pack = "pack our repository, and remove what nothing has led to for two weeks; safe beside whoever writes"
        parser.add_argument("--pack", action="store_true", help=pack)
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do what is asked; an error names the part that failed, and what came before it stays done."""
        asked = [options[name] for name in ("fetch", "advance", "pack")]
        asked += [options[name] is not None for name in ("push", "proposals", "pull_request")]
        if not any(asked):
            raise CommandError(
                "say what to do: --fetch, --advance, --push, --proposals, --pull-request, --pack"
            )
        done: dict[str, Any] = {}
        try:
            self._sync(_find_harness(options["harness"]), options, done)
        except (LoopError, HarnessRepoError) as error:
            if not options["as_json"]:
                raise CommandError(str(error)) from None
            done["error"] = str(error)
        if options["as_json"]:
            self.stdout.write(json.dumps({"harness": options["harness"], **done}, indent=2))
        if "error" in done:
            sys.exit(FAILED)

    def _sync(self, harness: Harness, options: Options, done: dict[str, Any]) -> None:
        """Do it, and keep in `done` what is; each part is said as soon as it is done."""
        if options["fetch"] or options["advance"]:
            result = fetch_harness(SYSTEM, harness)
            done |= {"fetched": dict(result.branches), "skipped": dict(result.skipped)}
            self._say(options, *(f"fetched {name} {sha[:12]}" for name, sha in result.branches.items()))
            done["changed_outside"] = [proposal.pk for proposal in result.moved]
            self._say(options, *(f"proposal {proposal.pk} was changed outside" for proposal in result.moved))
            for name, reason in result.skipped.items() if not options["as_json"] else ():
                self.stderr.write(f"left out {name}: {reason}")
        if options["advance"]:
            release = advance_harness(SYSTEM, harness)
            done["live"] = {"tag": release.tag, "commit": release.commit} if release else None
            self._say(options, f"live: {release.tag} {release.commit[:12]}" if release else "live already")
        if options["push"] is not None:
            done["pushed"] = push_harness(SYSTEM, harness, options["push"])
            self._say(options, f"pushed {', '.join(done['pushed'])}")
        if options["proposals"] is not None:
            done["proposals"] = push_proposals(SYSTEM, harness, options["proposals"])
            self._say(options, *(f"pushed {name} {sha[:12]}" for name, sha in done["proposals"].items()))
        if options["pull_request"] is not None:
            text = _write_pull_request(harness, options["pull_request"])
            done["pull_request"] = {"title": text.title, "body": text.body}
            self._say(options, text.title, "", text.body)
        if options["pack"]:
            pack_harness(SYSTEM, harness)
            done["packed"] = True
            self._say(options, "packed")

    def _say(self, options: Options, *lines: str) -> None:
        for line in () if options["as_json"] else lines:
            self.stdout.write(line)


def _write_pull_request(harness: Harness, pk: int) -> PullRequest:
    proposal = harness.proposals.select_related("diagnosis__cluster", "step").filter(pk=pk).first()
    if proposal is None or not proposal.head_commit:
        raise LoopError(f"{harness} has no proposal {pk} with a version")
    return write_pull_request(proposal, flag_proposal(proposal))


def _find_harness(name: str) -> Harness:
    harness = Harness.objects.filter(name=name).first()
    if harness is None:
        raise LoopError(f"there is no harness {name}")
    return harness
