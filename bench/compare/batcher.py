"""Dynamic batching as it is written for a server of FastAPI: a queue, a few milliseconds of patience, one call."""

import asyncio
from typing import Any, Callable


class Batcher:
    """`work` takes a list of at most `most` items and returns as many results; it runs in a thread of its own, one call
    at a time. Items that come meanwhile are the next batch."""

    def __init__(self, work: Callable[[list], list], most: int, wait_s: float):
        self.work, self.most, self.wait_s = work, most, wait_s
        self.queue: asyncio.Queue = asyncio.Queue()

    async def result(self, item: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        self.queue.put_nowait((item, future))
        return await future

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self.queue.get()]
            if self.queue.qsize() < self.most - 1:
                await asyncio.sleep(self.wait_s)
            while len(batch) < self.most and not self.queue.empty():
                batch.append(self.queue.get_nowait())
            try:
                results = await loop.run_in_executor(None, self.work, [item for item, _ in batch])
            except Exception as error:  # of all that were in this batch
                results = [error] * len(batch)
            for (_, future), result in zip(batch, results):
                if future.cancelled():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
