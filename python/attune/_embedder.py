from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from os import fspath
from typing import Unpack

from . import _core
from ._core import Interrupt, Tensor
from ._options import EmbedOptions, Path, Precision, Progress, check_text, plain, reporting, texts_of
from ._streams import Stream, in_thread, stream_of


class Embedder:
    """An encoder that makes a vector of each text.

    `model` is a folder of the Hugging Face hub, sentence-transformers' included, or one of Attune's with an encoder or
    a classifier.

    >>> embedder = Embedder(embedding_model)
    >>> embedder.embed(["a b", "c"]).shape == (2, embedder.dimension())
    True

    May be used by several threads at once.
    """

    def __init__(self, model: Path, *, precision: Precision = "float32", device: str = "cpu") -> None:
        self._embedder = _core.Embedder(fspath(model), precision, device)

    def embed(
        self,
        texts: str | Sequence[str],
        *,
        progress: Progress = False,
        interrupt: Interrupt | None = None,
        **options: Unpack[EmbedOptions],
    ) -> Tensor:
        """Returns float32 [texts, dimension], of a single text [dimension]; numpy.asarray() and torch.from_dlpack()
        take it without a copy. A vector does not depend on the other texts. Of a text that is longer than the model
        reads, the beginning is used; a UserWarning says how many such texts there are."""
        batch = texts_of(texts, "text")
        with reporting(progress, "embed") as report:
            vectors, cut = self._embedder.embed(batch, plain(options), report, interrupt)
        self._warn_of_cut(cut, len(batch))
        return vectors.reshape([-1]) if isinstance(texts, str) else vectors

    async def embed_async(self, texts: str | Sequence[str], **options: Unpack[EmbedOptions]) -> Tensor:
        """embed() as a coroutine: other tasks run meanwhile. Cancelling the task ends the work."""
        return await in_thread(lambda end: self.embed(texts, interrupt=end, **options))

    def embed_iterable(self, texts: Iterable[str], **options: Unpack[EmbedOptions]) -> Stream[Tensor, None]:
        """embed() for more texts than memory holds: a tensor [dimension] for each, in their order, by for or async for.
        `texts` is read on another thread, three pieces of 16 * batch_texts ahead at most; a call takes what has arrived.
        One UserWarning at the end says how many texts were cut. Leaving the loop ends the work.

        >>> embedder = Embedder(embedding_model)
        >>> sum(1 for _ in embedder.embed_iterable("a b" for _ in range(100)))
        100
        """

        embedded = cut = 0

        def call(piece: list[str], interrupt: Interrupt) -> list[Tensor]:
            nonlocal embedded, cut
            vectors, cut_of_piece = self._embedder.embed(piece, plain(options), None, interrupt)
            embedded, cut = embedded + len(piece), cut + cut_of_piece
            return [vectors.rows(row, row + 1).reshape([-1]) for row in range(len(piece))]

        def check(text: str, number: int) -> None:
            check_text(text, f"text {number}")

        def end() -> None:
            self._warn_of_cut(cut, embedded)

        return stream_of(call, texts, 16 * plain(options).get("batch_texts", 64), check, end)

    def _warn_of_cut(self, cut: int, texts: int) -> None:
        if cut > 0:
            found = f"{cut} of {texts} texts {'was' if cut == 1 else 'were'} cut"
            message = f"{found}: the model reads {self._embedder.max_tokens()} tokens, with bos and eos"
            warnings.warn(message, stacklevel=3)

    def dimension(self, **options: Unpack[EmbedOptions]) -> int:
        """How many numbers a vector has."""
        return self._embedder.dimension(plain(options))
