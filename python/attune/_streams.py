"""Results that come while the work goes on, on a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

from . import _core
from ._options import chunks

T = TypeVar("T")
R = TypeVar("R")
Item = TypeVar("Item")


class _Channel(Generic[T, R]):
    """From the thread that works to the one that reads. The worker holds this alone, not the Stream: a Stream that
    nobody has any more cancels its work."""

    def __init__(self, most: int) -> None:
        self.interrupt = _core.Interrupt()
        self._most = most  # items that wait; 0: any number
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.ended = False
        self.error: BaseException | None = None
        self.result: R | None = None

    def put(self, item: T) -> None:
        """Waits while the reader is far behind. Returns at once when the work is cancelled."""
        with self._changed:
            while self._most and len(self._items) >= self._most and not self._abandoned():
                self._changed.wait(0.05)
            self._items.append(item)
            self._wake(1)  # the task that has waited longest
        self._abandoned()

    def end(self, result: R | None, error: BaseException | None) -> None:
        with self._changed:
            self.result, self.error, self.ended = result, error, True
            self._wake(len(self._waiting))

    def get(self) -> T:
        """Throws StopIteration at the end, and the error of the work."""
        with self._changed:
            while not self._items and not self.ended:
                self._changed.wait()
            return self._take()

    async def get_async(self) -> T:
        """The same with StopAsyncIteration."""
        loop = asyncio.get_running_loop()
        while True:
            with self._changed:
                if self._items or self.ended:
                    try:
                        return self._take()
                    except StopIteration:
                        raise StopAsyncIteration from None
                future = loop.create_future()
                self._waiting.append((loop, future))
            await future

    def _take(self) -> T:
        if self._items:
            self._changed.notify_all()
            return self._items.popleft()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        raise StopIteration

    def _wake(self, tasks: int) -> None:
        self._changed.notify_all()
        woken, self._waiting = self._waiting[:tasks], self._waiting[tasks:]
        for loop, future in woken:  # who finds nothing waits again
            try:
                loop.call_soon_threadsafe(_finish, future)
            except RuntimeError:  # the loop is closed
                self.interrupt.set()

    def _abandoned(self) -> bool:
        """Whether nobody will read: the work then ends, too when the program does."""
        if not threading.main_thread().is_alive():
            self.interrupt.set()
        return self.interrupt.is_set()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _work(channel: _Channel[T, R], run: Callable[[Callable[[T], None], _core.Interrupt], R], threads: int) -> None:
    try:
        with _core.threads(threads):
            result = run(channel.put, channel.interrupt)
        channel.end(result, None)
    except BaseException as error:  # the reader gets it
        channel.end(None, error)


class Stream(Generic[T, R]):
    """What a call gives while it works: an iterator, and an asynchronous one. Leaving the loop, `close()`, the end of a
    `with` block, the end of the task that waits and Ctrl-C cancel the work. Several tasks may read one stream: each item
    goes to one of them. `result` is what the call returns in the end.

    >>> generator = TextGenerator(language_model)
    >>> with generator.stream("a b", max_tokens=4) as stream:
    ...     text = "".join(stream)
    >>> text == stream.result.text
    True
    """

    def __init__(self, run: Callable[[Callable[[T], None], _core.Interrupt], R], most: int = 0) -> None:
        self._channel: _Channel[T, R] = _Channel(most)
        arguments = (self._channel, run, _core.thread_count())  # as many threads as a call here would have
        self._thread = threading.Thread(target=_work, args=arguments, name="attune-stream")
        self._thread.start()

    @property
    def result(self) -> R | None:
        """What the call returned; None while it works, and after an error."""
        return self._channel.result

    def close(self) -> None:
        """Ends the work and waits for it."""
        self._channel.interrupt.set()
        self._thread.join()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        try:
            return self._channel.get()
        except StopIteration:
            raise
        except BaseException:  # KeyboardInterrupt: nobody reads on
            self._channel.interrupt.set()
            raise

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        try:
            return await self._channel.get_async()
        except StopAsyncIteration:
            raise
        except BaseException:  # CancelledError too
            self._channel.interrupt.set()
            raise

    def __enter__(self) -> Stream[T, R]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Stream[T, R]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.interrupt.set()
        await asyncio.to_thread(self._thread.join)

    def __del__(self) -> None:
        if hasattr(self, "_channel"):
            self._channel.interrupt.set()


def stream_of(
    call: Callable[[list[Item], _core.Interrupt], Iterable[T]], items: Iterable[Item], at_once: int
) -> Stream[T, None]:
    """The results of a call for more items than memory holds. The items are read on another thread, `at_once` for each
    call; at most so many results wait to be read."""

    def run(put: Callable[[T], None], interrupt: _core.Interrupt) -> None:
        for piece in chunks(items, at_once):
            for result in call(piece, interrupt):
                put(result)
            if interrupt.is_set():
                return

    return Stream(run, most=at_once)


async def in_thread(run: Callable[[_core.Interrupt], R]) -> R:
    """Awaits a call on another thread, with as many threads as it would have here. A task that is cancelled ends the
    call and then itself."""
    interrupt, threads = _core.Interrupt(), _core.thread_count()

    def run_there() -> R:
        with _core.threads(threads):
            return run(interrupt)

    call = asyncio.create_task(asyncio.to_thread(run_there))
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        interrupt.set()
        await asyncio.wait([call])
        if not call.cancelled():
            call.exception()  # has been seen
        raise


__all__ = ["Stream", "in_thread", "stream_of"]
