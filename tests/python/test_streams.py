"""Results that come while the work goes on: iterators, asyncio, cancellation, signals, processes."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import attune
from attune._streams import in_thread

LONG = {"max_tokens": 100_000, "slide": True, "eos_tokens": [2**20]}  # never ends by itself


def streams(name: str = "attune-stream") -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == name]


def wait_for_end_of_streams(name: str = "attune-stream") -> None:
    end = time.monotonic() + 30
    while streams(name) and time.monotonic() < end:
        time.sleep(0.01)
    assert not streams(name)


def test_a_stream_is_the_text(generator: attune.TextGenerator) -> None:
    stream = generator.stream("the dog", seed=2, max_tokens=12)
    text = "".join(stream)
    whole = generator.generate("the dog", seed=2, max_tokens=12)
    assert text == whole.text
    assert stream.result is not None and stream.result.tokens == whole.tokens


def test_tokens_are_those_of_the_text(generator: attune.TextGenerator) -> None:
    steps = list(generator.generate_tokens("the dog", max_length=6, sampling_temperature=0))
    whole = generator.generate("the dog", temperature=0, max_tokens=6)
    assert [s.token_id for s in steps] == whole.tokens
    assert [s.step for s in steps] == list(range(len(steps)))
    assert all(isinstance(s.token, str) for s in steps)


def test_leaving_the_loop_ends_the_work(generator: attune.TextGenerator) -> None:
    for _ in generator.stream("the dog", **LONG):  # type: ignore[arg-type]
        break
    gc.collect()
    wait_for_end_of_streams()


def test_close_ends_the_work_and_keeps_what_there_is(generator: attune.TextGenerator) -> None:
    with generator.stream("the dog", **LONG) as stream:  # type: ignore[arg-type]
        next(stream)
    assert stream.result is not None and stream.result.finish_reason == "interrupted"


def test_a_stream_in_asyncio(generator: attune.TextGenerator) -> None:
    async def read() -> str:
        return "".join([text async for text in generator.stream("the dog", seed=2, max_tokens=12)])

    assert asyncio.run(read()) == generator.generate("the dog", seed=2, max_tokens=12).text


def test_two_tasks_share_a_stream(generator: attune.TextGenerator) -> None:
    def give(put: Callable[[int], None], interrupt: attune.Interrupt) -> None:
        for item in range(20):
            time.sleep(0.005)  # so that both wait
            put(item)

    async def share() -> list[list[int]]:
        stream: attune.Stream[int, None] = attune.Stream(give)

        async def read() -> list[int]:
            return [item async for item in stream]

        return await asyncio.wait_for(asyncio.gather(read(), read()), 30)

    one, other = asyncio.run(share())
    assert sorted(one + other) == list(range(20)) and one and other


def test_threads_of_a_block_are_those_of_streams_and_awaited_calls() -> None:
    def count(put: Callable[[int], None], interrupt: attune.Interrupt) -> int:
        return attune.thread_count()

    async def awaited() -> int:
        with attune.threads(1):
            return await in_thread(lambda interrupt: attune.thread_count())

    with attune.threads(1):
        stream: attune.Stream[int, int] = attune.Stream(count)
    assert list(stream) == [] and stream.result == 1
    assert asyncio.run(awaited()) == 1


def test_ctrl_c_in_a_loop_ends_the_work() -> None:
    """Also while something still has the stream."""
    ended = threading.Event()

    def wait(put: Callable[[int], None], interrupt: attune.Interrupt) -> None:
        while not interrupt.is_set():
            time.sleep(0.01)
        ended.set()

    stream: attune.Stream[int, None] = attune.Stream(wait)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            next(stream)
        assert ended.wait(30)
    finally:
        signal.signal(signal.SIGINT, before)
        stream.close()


def test_other_tasks_run_beside_a_stream(generator: attune.TextGenerator) -> None:
    async def both() -> tuple[str, str]:
        async def read(seed: int) -> str:
            return "".join([text async for text in generator.stream("the dog", seed=seed, max_tokens=20)])

        one, other = await asyncio.gather(read(1), read(2))
        return one, other

    assert asyncio.run(both()) == tuple(generator.generate("the dog", seed=s, max_tokens=20).text for s in (1, 2))


def test_cancelling_a_task_ends_the_work(generator: attune.TextGenerator) -> None:
    async def cancel() -> None:
        async def read() -> None:
            async for _ in generator.stream("the dog", **LONG):  # type: ignore[arg-type]
                pass

        task = asyncio.create_task(read())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    gc.collect()
    wait_for_end_of_streams()


def test_awaited_calls(
    generator: attune.TextGenerator, translator: attune.Translator, classifier: attune.Classifier
) -> None:
    async def calls() -> None:
        text = await generator.generate_async("the dog", seed=2, max_tokens=5)
        assert text.text == generator.generate("the dog", seed=2, max_tokens=5).text
        assert (await translator.translate_async("the dog")).text == translator.translate("the dog").text
        assert await classifier.classify_async(["the dog"]) == classifier.classify(["the dog"])
        assert await classifier.classify_async("the dog") == classifier.classify("the dog")
        pair = ("the dog", "a house")
        assert await classifier.classify_async(pair) == classifier.classify(pair)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(generator.generate_async("the dog", **LONG), 0.2)  # type: ignore[arg-type]

    asyncio.run(calls())


def test_an_iterable_is_translated_in_its_order(translator: attune.Translator) -> None:
    sentences = [("the dog " * (1 + i % 3)).strip() for i in range(700)]
    single = {s: translator.translate(s, beam_size=1).text for s in set(sentences)}
    found = [t.text for t in translator.translate_iterable(iter(sentences), beam_size=1)]
    assert found == [single[s] for s in sentences]


def test_an_iterable_is_read_as_it_is_needed(translator: attune.Translator) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "the dog"

    stream = translator.translate_iterable(endless(), beam_size=1, max_length=2)
    for _ in range(10):
        next(stream)
    stream.close()
    assert read < 20_000
    wait_for_end_of_streams()


def test_an_error_of_an_iterable_is_the_loop_s(
    translator: attune.Translator, classifier: attune.Classifier
) -> None:
    def failing() -> Iterator[str]:
        yield "the dog"
        raise KeyError("broken")

    for stream in (translator.translate_iterable(failing()), classifier.classify_iterable(failing())):
        with pytest.raises(KeyError, match="broken"):
            list(stream)
    mixed: Any = ["the dog"] * 300 + [2]
    for stream in (translator.translate_iterable(mixed, beam_size=1, max_length=2), classifier.classify_iterable(mixed)):
        found = 0
        with pytest.raises(TypeError, match=r"(sentence|text) 301: is 2, needs to be a str"):
            for _ in stream:
                found += 1
        assert found == 300
    kinds: Any = ["the dog", ("the dog", "a house")]
    with pytest.raises(attune.DataError, match="text 2: .*one kind"):
        list(classifier.classify_iterable(kinds))


def test_iterables_of_all_models_are_read_ahead_and_by_async_for(
    hub: Path, generator: attune.TextGenerator, classifier: attune.Classifier
) -> None:
    embedder = attune.Embedder(hub / "bert-classifier")
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "the dog"

    for piece, make in (
        (16, lambda: classifier.classify_iterable(endless(), batch_texts=1)),
        (16, lambda: embedder.embed_iterable(endless(), batch_texts=1)),
        (8, lambda: generator.generate_iterable(endless(), batch_texts=1, max_tokens=1)),
    ):
        read = 0
        stream: Any = make()
        next(stream)
        end = time.monotonic() + 30
        while read <= piece and time.monotonic() < end:  # the next piece, which nobody has asked for
            time.sleep(0.01)
        assert piece < read <= 3 * piece + 1
        stream.close()

    async def labels() -> list[str]:
        return [p.label async for p in classifier.classify_iterable(["the dog", "a house"])]

    assert asyncio.run(labels()) == [p.label for p in classifier.classify(["the dog", "a house"])]
    wait_for_end_of_streams()


def streams_of_all_models(hub: Path, make: Callable[[], Iterator[str]]) -> Iterator[attune.Stream[Any, None]]:
    yield attune.Translator(hub / "marian").translate_iterable(make(), beam_size=1)
    yield attune.TextGenerator(hub / "gpt2").generate_iterable(make(), max_tokens=1)
    yield attune.Classifier(hub / "bert-classifier").classify_iterable(make())
    yield attune.Embedder(hub / "bert-classifier").embed_iterable(make())


def test_results_come_while_an_iterable_waits_and_leaving_ends_the_work(hub: Path) -> None:
    queues: list[queue.Queue[str]] = []

    def questions() -> Iterator[str]:
        queues.append(queue.Queue())
        return iter(queues[-1].get, "")

    for stream in streams_of_all_models(hub, questions):
        for _ in range(2):
            queues[-1].put("the dog")
            next(stream)  # before the next text comes
        assert streams()
        stream.close()
        wait_for_end_of_streams()
        queues[-1].put("")  # the end, for the thread that reads
        wait_for_end_of_streams("attune-source")


def test_an_iterable_is_not_read_after_the_loop_was_left(hub: Path) -> None:
    def slow() -> Iterator[str]:
        while True:
            yield "the dog"
            time.sleep(0.01)

    for stream in streams_of_all_models(hub, slow):
        next(stream)
        assert streams("attune-source")
        stream.close()
        wait_for_end_of_streams("attune-source")


def test_a_block_of_a_generator_ends_where_it_began(hub: Path) -> None:
    threads = attune.thread_count()
    ended_on: list[str] = []

    def texts() -> Iterator[str]:
        try:
            with attune.no_grad():
                while True:
                    yield "the dog"
        finally:
            ended_on.append(threading.current_thread().name)

    for stream in streams_of_all_models(hub, texts):
        with attune.threads(1):
            next(stream)
            stream.close()
            wait_for_end_of_streams("attune-source")
            del stream
            gc.collect()
            assert attune.thread_count() == 1
        assert attune.thread_count() == threads
    assert ended_on == ["attune-source"] * 4


@pytest.mark.parametrize("source", ["sys.stdin", "iter(input, '')"])
@pytest.mark.parametrize("way", ["break", "interrupt"])
def test_a_program_ends_while_an_iterable_waits(hub: Path, way: str, source: str) -> None:
    program = f"""
import os, signal, sys, threading, attune
signal.signal(signal.SIGINT, signal.default_int_handler)
translator = attune.Translator({str(hub / "marian")!r})
for translation in translator.translate_iterable({source}, beam_size=1):
    print(translation.text, flush=True)
    if {way!r} == "break":
        break
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
"""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write("the dog\n")
    process.stdin.flush()
    status = process.wait(60)  # with the pipe open
    errors = process.stderr.read()
    assert status == (0 if way == "break" else -signal.SIGINT), errors
    assert ("KeyboardInterrupt" in errors) == (way == "interrupt")
    process.communicate()


def test_texts_of_an_iterable_are_generated(generator: attune.TextGenerator) -> None:
    found = list(generator.generate_iterable((p for p in ["the", "dog", "the"]), seed=1, max_tokens=4, batch_texts=1))
    assert [t.text for t in found] == [generator.generate(p, seed=1, max_tokens=4).text for p in ["the", "dog", "the"]]


def test_ctrl_c_ends_a_call(hub: Path) -> None:
    program = f"""
import os, signal, threading, attune
signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored in a job in the background
generator = attune.TextGenerator({str(hub / "gpt2")!r})
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    generator.generate("the dog", max_tokens=100000, slide=True, eos_tokens=[2**20])
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted\n", done.stderr


def test_a_signal_s_handler_may_make_calls(generator: attune.TextGenerator) -> None:
    """The worker of the call that it interrupts is at work."""
    texts: list[str] = []
    interrupt = attune.Interrupt()

    def handle(number: int, frame: Any) -> None:
        texts.append(generator.generate("the dog", seed=2, max_tokens=5).text)
        interrupt.set()

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        generator.generate("the dog", interrupt=interrupt, **LONG)  # type: ignore[arg-type]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert texts == [generator.generate("the dog", seed=2, max_tokens=5).text]


def test_a_program_ends_beside_a_stream(hub: Path) -> None:
    program = f"""
import attune
generator = attune.TextGenerator({str(hub / "gpt2")!r})
stream = generator.stream("the dog", max_tokens=100000, slide=True, eos_tokens=[2**20])
next(stream)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def _translate_in_child(translator: attune.Translator, queue: multiprocessing.SimpleQueue[str]) -> None:
    queue.put(translator.translate("the dog").text)


def test_a_forked_process_works(translator: attune.Translator) -> None:
    expected = translator.translate("the dog").text
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    process = context.Process(target=_translate_in_child, args=(translator, queue))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert queue.get() == expected


def test_a_process_forked_during_a_call_says_so(generator: attune.TextGenerator) -> None:
    stream = generator.stream("the dog", **LONG)  # type: ignore[arg-type]
    next(stream)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        message = "no error"
        try:
            generator.generate("the dog")
        except attune.Error as error:
            message = str(error)
        os.write(writer, message.encode())
        os._exit(0)
    os.close(writer)
    try:
        with os.fdopen(reader) as pipe:
            assert "was forked while another thread was in a call" in pipe.read()
    finally:
        stream.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
