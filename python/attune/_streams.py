"""Results that come while the work goes on, on a thread of their own."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

from . import _core

T = TypeVar("T")
R = TypeVar("R")
Item = TypeVar("Item")

_BETWEEN_LOOKS = 0.05  # seconds, at whether the work is abandoned
_PATIENCE = 0.005  # seconds that a piece waits for more than its first item
_LAST_ITEM = 0.2  # seconds that the end of the work waits for the item that is being read


class _Channel(Generic[T, R]):
    """Carries items from the thread that works to the one that reads. The working thread holds this and not the Stream:
    so a Stream that nobody holds any more can cancel its work."""

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
            while self._most and len(self._items) >= self._most and not _abandoned(self.interrupt):
                self._changed.wait(_BETWEEN_LOOKS)
            self._items.append(item)
            self._wake(1)  # the task that has waited longest
        _abandoned(self.interrupt)

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
        for loop, future in woken:  # a task that finds nothing waits again
            try:
                loop.call_soon_threadsafe(_finish, future)
            except RuntimeError:  # the loop is closed
                self.interrupt.set()


def _abandoned(interrupt: _core.Interrupt) -> bool:
    """Whether nobody will read any more. At the end of the program nobody will, and this sets the interrupt."""
    if not threading.main_thread().is_alive():
        interrupt.set()
    return interrupt.is_set()


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


class Source(Generic[Item]):
    """The items of an iterable, in pieces: what has arrived, `most` items at most. A thread of its own reads them, at
    most `most` items ahead; neither the work nor the end of the program waits for an iterable that blocks. `check` is
    called with each item and its number, from 1, and throws for an item that cannot be used. To be used in a `with`
    block, whose end stops the reading."""

    def __init__(
        self, items: Iterable[Item], most: int, check: Callable[[Item, int], None], interrupt: _core.Interrupt
    ) -> None:
        self._most = most
        self._interrupt = interrupt
        self._waiting: deque[Item] = deque()
        self._changed = threading.Condition()
        self._ended = False  # there are no more items, or nobody takes them
        self._error: BaseException | None = None
        arguments = (items, check, _core.thread_count())
        self._thread = threading.Thread(target=self._read, args=arguments, name="attune-source", daemon=True)
        self._thread.start()

    def take(self, wait: bool) -> list[Item]:
        """Returns the next items. With `wait` it waits for the first: an empty list is then the end, or the work is
        abandoned. Without, it returns what there is. With `wait` it throws the error of the iterable, once the items
        before it are taken."""
        with self._changed:
            while wait and not self._waiting and not self._ended and not _abandoned(self._interrupt):
                self._changed.wait(_BETWEEN_LOOKS)
            end = time.monotonic() + _PATIENCE
            while wait and 0 < len(self._waiting) < self._most and not self._ended:
                if not self._changed.wait(end - time.monotonic()):
                    break
            if wait and not self._waiting and self._error is not None:
                raise self._error
            items = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return items

    def _read(self, items: Iterable[Item], check: Callable[[Item, int], None], threads: int) -> None:
        error = None
        _kept = sys.stdin  # stays open: a read of it may go on until Python ends, which would abort if it were closed
        try:
            with _core.threads(threads):
                try:
                    for number, item in enumerate(items, 1):
                        check(item, number)
                        if not self._has_taken(item):
                            break
                finally:
                    if isinstance(items, Generator):  # on this thread, where its `with` blocks began
                        items.close()
        except BaseException as thrown:  # who takes gets it
            error = thrown
        with self._changed:
            self._error, self._ended = error, True
            self._changed.notify_all()

    def _has_taken(self, item: Item) -> bool:
        """Keeps the item and waits until there is room for another. False: nobody takes it."""
        with self._changed:
            self._waiting.append(item)
            if len(self._waiting) in (1, self._most):
                self._changed.notify_all()
            while len(self._waiting) >= self._most and not self._ended:
                self._changed.wait()
            return not self._ended

    def __enter__(self) -> Source[Item]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join(_LAST_ITEM)


def stream_of(
    call: Callable[[list[Item], _core.Interrupt], Iterable[T]],
    items: Iterable[Item],
    at_once: int,
    check: Callable[[Item, int], None],
    end: Callable[[], None] = lambda: None,
) -> Stream[T, None]:
    """The results of a call for more items than memory holds. Other threads read and check the items, of which a call
    takes what has arrived, `at_once` at most; so many results wait to be read. `end` is called after the last call, also
    where the loop was left or an error ends it."""

    def run(put: Callable[[T], None], interrupt: _core.Interrupt) -> None:
        try:
            with Source(items, at_once, check, interrupt) as source:
                while not interrupt.is_set() and (piece := source.take(wait=True)):
                    for result in call(piece, interrupt):
                        put(result)
        finally:
            end()

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


__all__ = ["Source", "Stream", "in_thread", "stream_of"]
