#!/usr/bin/env python3
"""A server of translation as users of CTranslate2 write it: FastAPI, and a queue that makes batches.

POST /translate takes and returns what LibreTranslate's does, for one text. With --one-by-one there is no queue, and each
text is translated alone, as LibreTranslate does it.
"""

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

sys.modules["torch"] = None  # ctranslate2 would take it along where it is installed
import ctranslate2
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from batcher import Batcher
from in_turn import check_at_least_1
from model_folder import Pieces


class Request(BaseModel):
    q: str
    source: str
    target: str


class Translation:
    def __init__(self, o: argparse.Namespace):
        self.o = o
        workers, threads = (o.threads, 1) if o.workers else (1, o.threads)
        self.translator = ctranslate2.Translator(
            str(o.converted), compute_type=o.compute_type, inter_threads=workers, intra_threads=threads
        )
        self.source, self.target = Pieces(o.model, "source"), Pieces(o.model, "target")

    def translate(self, texts: list[str]) -> list[str]:
        found = self.translator.translate_batch(
            [self.source.encode(text) for text in texts],
            max_batch_size=-(-len(texts) // self.translator.num_translators),  # a part for each worker
            beam_size=self.o.beam_size,
            length_penalty=self.o.length_penalty,
            max_decoding_length=self.o.max_length,
        )
        return [self.target.decode(f.hypotheses[0]) for f in found]


def make_app(o: argparse.Namespace) -> FastAPI:
    translation = Translation(o)
    batcher = Batcher(translation.translate, o.batch_size, o.wait_ms / 1000)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI):
        task = asyncio.create_task(batcher.run())
        yield
        task.cancel()

    app = FastAPI(lifespan=lifespan)

    @app.get("/health")
    async def health() -> dict:
        return {"status": "ok"}

    if o.one_by_one:

        @app.post("/translate")
        def translate_alone(request: Request) -> dict:  # in a thread of the pool
            return {"translatedText": translation.translate([request.q])[0]}

    else:

        @app.post("/translate")
        async def translate(request: Request) -> dict:
            return {"translatedText": await batcher.result(request.q)}

    return app


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", type=Path, required=True, help="folder of Attune")
    p.add_argument("--converted", type=Path, required=True, help="what to_ctranslate2.py has made of it")
    p.add_argument("--compute-type", choices=["float32", "int8", "int8_float32"], default="float32")
    p.add_argument("--one-by-one", action="store_true")
    p.add_argument("--workers", action="store_true", help="a batch is divided among --threads workers of one thread")
    p.add_argument("--batch-size", type=int, default=64, help="at most")
    p.add_argument("--wait-ms", type=float, default=5, help="for others to come")
    p.add_argument("--beam-size", type=int, default=5)
    p.add_argument("--length-penalty", type=float, default=1.0)
    p.add_argument("--max-length", type=int, default=256)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--port", type=int, default=8000)
    o = p.parse_args()
    check_at_least_1(p, o, ("batch_size", "beam_size", "max_length", "threads", "port"))
    uvicorn.run(make_app(o), host="127.0.0.1", port=o.port, log_level="warning", backlog=4096)
    return 0


if __name__ == "__main__":
    sys.exit(main())
