"""Clusters as BERTopic's defaults make them: UMAP to five dimensions, then HDBSCAN; for the quality benchmark.

Runs in an environment of its own, which has umap-learn and hdbscan: `PYTHON peer_clusters.py VECTORS.npy LABELS.npy`.
"""

import sys
import time

import hdbscan
import numpy as np
import umap


def main() -> None:
    """Read vectors, write labels, print the seconds without the compilation."""
    vectors = np.load(sys.argv[1])
    settings = {"n_neighbors": 15, "n_components": 5, "min_dist": 0.0, "metric": "cosine", "random_state": 42}
    umap.UMAP(**settings).fit_transform(vectors[:200])
    began = time.perf_counter()
    points = umap.UMAP(**settings).fit_transform(vectors)
    model = hdbscan.HDBSCAN(min_cluster_size=10, metric="euclidean", cluster_selection_method="eom").fit(
        points
    )
    sys.stdout.write(str(time.perf_counter() - began))
    np.save(sys.argv[2], model.labels_)


if __name__ == "__main__":
    main()
