"""How often the verdict tells two versions apart that answer alike; a module to run, no test.

Both sides are drawn from the same chances, case by case, so that every decision is a false one. Takes some minutes.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from evolution.loop.flips import CasePair, CaseScores
from evolution.loop.verdict import Policy, RunFacts, decide

PAIRS = 300
# The interval's ends move by a fraction of a point, and the simulation is ten times as fast.
POLICY = Policy(resamples=999)


@dataclass(frozen=True)
class World:
    """How versions behave: the size of the set, and the share of answers that come out anew in each run."""

    cases: int
    unsteady: float
    repeats: int = 1


def draw_sides(rng: np.random.Generator, world: World) -> tuple[CaseScores, CaseScores]:
    """One case on both sides: a usual answer, from which each repeat may stray."""
    usual = _answer(rng)
    first, second = (
        [usual if rng.random() >= world.unsteady else _answer(rng) for _ in range(world.repeats)]
        for _ in range(2)
    )
    return _average(first), _average(second)


def _answer(rng: np.random.Generator) -> tuple[float, float]:
    """Accuracy and effectiveness: seven in ten answers are right in both."""
    if rng.random() < 0.7:
        return 1.0, 1.0
    if rng.random() < 0.6:
        return 0.0, float(rng.choice([0, 0.5, 1]))
    return 1.0, float(rng.choice([0, 0.5]))


def _average(answers: list[tuple[float, float]]) -> CaseScores:
    accuracy, effectiveness = (float(np.mean(scores)) for scores in zip(*answers, strict=True))
    passes = sum(answer == (1.0, 1.0) for answer in answers)
    return CaseScores(accuracy, effectiveness, passes=passes, repeats=len(answers))


def count_outcomes(world: World, pairs: int = PAIRS, seed: int = 0, policy: Policy = POLICY) -> Counter[str]:
    """The outcomes of so many comparisons of a version with itself."""
    rng = np.random.default_rng(seed)
    facts = RunFacts("v1", "dev", "m", "c", "j", world.repeats)
    outcomes: Counter[str] = Counter()
    for _ in range(pairs):
        sides = [draw_sides(rng, world) for _ in range(world.cases)]
        cases = [CasePair(f"c{n}", "dev", "any", *both) for n, both in enumerate(sides)]
        outcomes[decide(cases, facts, facts, policy).outcome] += 1
    return outcomes


def main() -> None:
    """Print a line for each world."""
    print(f"{PAIRS} null pairs each, alpha {POLICY.alpha}")  # noqa: T201  it is what this prints
    print("cases  unsteady  repeats  promote  reject  decisive")  # noqa: T201
    for world in (World(116, 0.1), World(116, 0.3), World(400, 0.2), World(116, 0.3, repeats=3)):
        found = count_outcomes(world)
        decisive = (found["promote"] + found["reject"]) / PAIRS
        print(  # noqa: T201
            f"{world.cases:5}  {world.unsteady:8.1f}  {world.repeats:7}  {found['promote']:7}  "
            f"{found['reject']:6}  {decisive:8.1%}"
        )


if __name__ == "__main__":
    main()
