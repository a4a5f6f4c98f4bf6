"""How well failures are grouped: `python -m tests.benchmarks.cluster_quality [--peer PYTHON]`.

Two sets of real utterances with gold labels, embedded once; all points count, what is unclustered as one more label.
NMI, ARI, and the share unclustered. With --peer, the Python of an environment that has umap-learn and hdbscan
(python -m venv peer && peer/bin/pip install umap-learn hdbscan), a row for what BERTopic does by default: UMAP and
HDBSCAN on the same vectors. The last column is the share of a first 5/6 whose failures stay in their cluster when the
last sixth comes and all are clustered again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

DATA = Path(__file__).resolve().parent.parent.parent.parent / "shared" / "data"
PEER = Path(__file__).with_name("support") / "peer_clusters.py"


def read_sets() -> Iterator[tuple[str, list[str], list[str]]]:
    """Name, texts and labels of each set."""
    lines = (DATA / "crosswoz_intents" / "crosswoz_user_intents_zh.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    yield "crosswoz_intents", [row["text"] for row in rows], [row["label"] for row in rows]
    pairs = [
        line.rsplit("\t", 1)
        for line in (DATA / "intents" / "banking77_test.tsv").read_text().splitlines()[1:]
    ]
    yield "intents", [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def score(gold: Sequence[str], labels: Sequence[int]) -> str:
    """NMI, ARI, share unclustered and number of clusters."""
    nmi, ari = normalized_mutual_info_score(gold, labels), adjusted_rand_score(gold, labels)
    outside = sum(label < 0 for label in labels) / len(labels)
    return f"NMI {nmi:.3f}   ARI {ari:.3f}   unclustered {outside:6.1%}   clusters {len({*labels} - {-1}):3}"


def share_staying(clusterer: Any, vectors: Any) -> float:
    """Share of the members of a first clustering that keep their cluster in the second; shuffled, always alike."""
    order = np.random.default_rng(1).permutation(len(vectors))
    old = np.sort(order[: len(vectors) * 5 // 6])
    before = np.array(clusterer.group(vectors[old]).labels)
    known = np.full(len(vectors), -1)
    known[old] = before
    after = np.array(clusterer.group(vectors, known.tolist()).labels)[old]
    pairs = Counter(zip(before[before >= 0].tolist(), after[before >= 0].tolist(), strict=True))
    owner: dict[int, int] = {}
    for (one, other), _count in sorted(pairs.items(), key=lambda entry: -entry[1]):
        if other >= 0 and one not in owner and other not in owner.values():
            owner[one] = other
    return sum(pairs[pair] for pair in owner.items()) / int((before >= 0).sum())


def ask_peer(python: str, vectors: Any) -> tuple[list[int], float]:
    """The peer's labels and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "vectors.npy"), Path(folder, "labels.npy")
        np.save(given, vectors)
        command = [python, "-W", "ignore", str(PEER), str(given), str(made)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return np.load(made).tolist(), float(told.split()[-1])


def say(line: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Print a row for each set and each way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", help="Python of an environment with umap-learn and hdbscan")
    peer = parser.parse_args().peer
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    from evolution.adapters.clustering import HdbscanClusterer  # noqa: PLC0415  after the environment is set
    from evolution.adapters.embedding import build_embedder  # noqa: PLC0415

    embedder, clusterer = build_embedder(), HdbscanClusterer()
    for name, texts, gold in read_sets():
        vectors = embedder.embed(texts)
        began = time.perf_counter()
        labels = clusterer.group(vectors).labels
        seconds = time.perf_counter() - began
        stay = share_staying(clusterer, vectors)
        say(f"{name:18} workbench      {score(gold, labels)}   {seconds:5.1f} s   stay {stay:.1%}")
        if peer:
            labels, seconds = ask_peer(peer, vectors)
            say(f"{name:18} UMAP, HDBSCAN  {score(gold, labels)}   {seconds:5.1f} s")


if __name__ == "__main__":
    main()
