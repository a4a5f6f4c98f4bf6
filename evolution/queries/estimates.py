"""What an evaluation would take, for the form that starts it and for the command line."""

from collections.abc import Iterable, Mapping

from django.utils.translation import gettext as _

from evolution.adapters.chat import Role, build_model
from evolution.errors import LoopError
from evolution.loop.estimates import Estimate, estimate
from evolution.loop.plans import DEFAULT_SPLITS, has_conversations
from evolution.loop.repositories import open_repository
from evolution.loop.runners import describe_runner
from evolution.models import DatasetVersion, Evaluation, Harness
from evolution.ports import NamedModel
from harness_repo.git.repository import MAIN
from harness_repo.runtime.faults import Fault


def estimate_evaluation(
    harness: Harness,
    ref: str,
    version: DatasetVersion,
    *,
    splits: Iterable[str] = DEFAULT_SPLITS,
    repeats: int = 1,
    faults: Iterable[Fault] = (),
    is_fresh: bool = False,
) -> Estimate:
    """What measuring a commit, branch or tag would take, by the models that are set now; no model is asked.

    Takes a second or two. Raises LoopError where the evaluation could not be started, and HarnessRepoError for what
    cannot be read of the version.
    """
    if harness.judge is None:
        raise LoopError(_("%(harness)s has no judge; give it one first") % {"harness": harness})
    splits = sorted(set(splits))
    models = _build_models(harness, version, splits)
    planned = Evaluation(
        harness=harness,
        dataset_version=version,
        splits=splits,
        commit=open_repository(harness).resolve(ref),
        judge_commit=open_repository(harness.judge).resolve(MAIN),
        runner=harness.runner,
        faults=[fault.to_dict() for fault in faults],
        repeats=repeats,
        is_fresh=is_fresh,
        **_name_models(harness, models),
    )
    return estimate(planned, models)


def _name_models(harness: Harness, models: Mapping[str, NamedModel]) -> dict[str, str]:
    """The fields of an evaluation that hold the names of what is asked."""
    names = {role: named.name for role, named in models.items()}
    return {
        "model": names.get(Role.POLICY) or describe_runner(harness.runner),
        "judge_model": names[Role.JUDGE],
        "user_model": names.get(Role.USER, ""),
    }


def _build_models(harness: Harness, version: DatasetVersion, splits: Iterable[str]) -> dict[str, NamedModel]:
    """In the order of a case; other agents than our runtime have models of their own."""
    roles = [] if harness.runner else [Role.POLICY]
    roles += [Role.USER] if has_conversations(version, splits) else []
    return {role.value: build_model(role) for role in [*roles, Role.JUDGE]}
