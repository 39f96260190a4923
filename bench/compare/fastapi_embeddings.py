#!/usr/bin/env python3
"""A server of sentence embeddings as users of ONNX Runtime write it: FastAPI, and a queue that makes batches.

POST /v1/embeddings takes and returns what OpenAI's does, for one text: the mean of the tokens' vectors, of length 1. With
--one-by-one there is no queue.
"""

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from tokenizers import Tokenizer

from batcher import Batcher
from in_turn import check_at_least_1


class Request(BaseModel):
    input: str


class Embedding:
    def __init__(self, o: argparse.Namespace):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = o.threads, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if o.spinning else "0")
        self.session = onnxruntime.InferenceSession(str(o.onnx), options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(o.tokenizer))
        self.tokenizer.enable_truncation(o.max_tokens)
        self.tokenizer.enable_padding()

    def embed(self, texts: list[str]) -> list[list[float]]:
        encoded = self.tokenizer.encode_batch(texts)
        mask = np.array([e.attention_mask for e in encoded], dtype=np.int32)
        ids = np.array([e.ids for e in encoded], dtype=np.int32)
        (hidden,) = self.session.run(None, {"input_ids": ids, "attention_mask": mask})
        weights = mask[:, :, None].astype(np.float32)
        mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return (mean / np.linalg.norm(mean, axis=1, keepdims=True)).tolist()


def answer(vector: list[float]) -> JSONResponse:
    return JSONResponse({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": vector}]})


def make_app(o: argparse.Namespace) -> FastAPI:
    embedding = Embedding(o)
    batcher = Batcher(embedding.embed, o.batch_size, o.wait_ms / 1000)

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

        @app.post("/v1/embeddings")
        def embed_alone(request: Request) -> JSONResponse:  # in a thread of the pool
            return answer(embedding.embed([request.input])[0])

    else:

        @app.post("/v1/embeddings")
        async def embed(request: Request) -> JSONResponse:
            return answer(await batcher.result(request.input))

    return app


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--onnx", type=Path, required=True, help="file of to_onnx.py")
    p.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json")
    p.add_argument("--max-tokens", type=int, default=256, help="longer texts are cut")
    p.add_argument("--one-by-one", action="store_true")
    p.add_argument("--spinning", action="store_true", help="of idle threads")
    p.add_argument("--batch-size", type=int, default=64, help="at most")
    p.add_argument("--wait-ms", type=float, default=5, help="for others to come")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--port", type=int, default=8000)
    o = p.parse_args()
    check_at_least_1(p, o, ("batch_size", "max_tokens", "threads", "port"))
    uvicorn.run(make_app(o), host="127.0.0.1", port=o.port, log_level="warning", backlog=4096)
    return 0


if __name__ == "__main__":
    sys.exit(main())
