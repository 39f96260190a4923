"""What is done to the server. Each attack adds what went wrong to a list of findings."""

import asyncio
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

from connection import Answer, Connection, ask
from mutations import Attack, Mutator, Route
from victim import SENTENCE, Known, Victim

# What a request may bring that is no HTTP as the routes expect it.
OF_HTTP = {200, 204, 400, 404, 405, 411, 413, 414, 415, 417, 422, 431, 501, 505}


class Findings:
    """What went wrong, each with the bytes that did it, where there are some."""

    def __init__(self, folder: Path | None):
        self.folder, self.list = folder, []

    def add(self, what: str, data: bytes = b"") -> None:
        self.list.append(what)
        if self.folder is not None and data:
            (self.folder / f"finding-{len(self.list)}").write_bytes(data)
        if len(self.list) <= 50:
            print(f"  {what}" + (f"  {data[:300]!r}" if data else ""), flush=True)


class Expected:
    """Known requests with their answers, asked now and then while something else goes on."""

    def __init__(self, victim: Victim, known: dict[str, Known], findings: Findings):
        self.victim, self.known, self.findings = victim, known, findings
        self.answers = {name: [request.answer(victim)] for name, request in known.items()}  # each that is right
        self.right = 0

    async def check(self, name: str, may_fail: bool = False) -> None:
        """`may_fail`: no answer is no finding, for the server may be dead."""
        request = self.known[name]
        try:
            answer = await asyncio.wait_for(
                ask(self.victim.port, request.path, request.body), 30 * self.victim.patience
            )
        except (OSError, TimeoutError, asyncio.TimeoutError) as error:
            answer = None
            if not may_fail:
                self.findings.add(f"{request.path}: a known request has no answer: {error!r}")
                return
        if answer is None:
            if not may_fail:
                self.findings.add(f"{request.path}: a known request has no answer")
        elif may_fail and answer.status == 503:
            pass
        elif Known.core(answer.status, answer.body.decode()) not in self.answers[name]:
            self.findings.add(f"{request.path}: a known request has another answer: {answer.body[:300]!r}")
        else:
            self.right += 1

    async def keep_asking(self, until: asyncio.Event, pause_s: float, may_fail: bool = False) -> None:
        while not until.is_set():
            for name in self.known:
                await self.check(name, may_fail)
                await asyncio.sleep(pause_s)


def check_answer(attack: Attack, answer: Answer | None, route: Route, findings: Findings) -> None:
    """Whether this is how the attack may be answered."""
    if answer is None:
        if attack.whole:
            findings.add(f"{attack.path}: {attack.kind}: the connection ends without an answer", attack.data)
        return
    if answer.status not in (route.statuses if attack.whole else route.statuses | OF_HTTP) or answer.status == 500:
        findings.add(f"{attack.path}: {attack.kind}: {answer.status} {answer.body[:200]!r}", attack.data)
    content_type = answer.headers.get("content-type", "")
    if content_type.startswith("application/json") and answer.body:
        try:
            if "error" not in json.loads(answer.body) and answer.status >= 400:
                findings.add(f"{attack.path}: {attack.kind}: {answer.status} without an error", attack.data)
        except ValueError:
            findings.add(f"{attack.path}: {attack.kind}: the answer is no JSON", attack.data)
    if content_type.startswith("text/event-stream") and answer.body:
        end = answer.body.rstrip().rsplit(b"\n\n", 1)[-1]
        if end != b"data: [DONE]" and not end.startswith(b'data: {"error"'):
            findings.add(f"{attack.path}: {attack.kind}: the stream has no end: {end[:100]!r}", attack.data)


async def mutated(
    victim: Victim, mutator: Mutator, count: int, at_once: int, expected: Expected, findings: Findings
) -> dict[int, int]:
    """Sends the mutator's requests, every fiftieth time a known one. Returns how often each status came, 0 for none."""
    by_path = {route.path: route for route in mutator.routes}
    statuses: dict[int, int] = {}
    names, left = list(expected.known), iter(range(count))

    async def one(attack: Attack) -> None:
        answer, head_only = None, attack.data.startswith(b"HEAD ")
        try:
            async with Connection(victim.port) as connection:
                await connection.send(attack.data)
                if attack.kind == "cut off":
                    connection.writer.write_eof()
                answer = await asyncio.wait_for(connection.answer(head_only), 40 * victim.patience)
        except (TimeoutError, asyncio.TimeoutError):
            findings.add(f"{attack.path}: {attack.kind}: no answer and no end of the connection", attack.data)
            return
        except (ValueError, KeyError, asyncio.LimitOverrunError) as error:
            findings.add(f"{attack.path}: {attack.kind}: the answer is no HTTP: {error!r}", attack.data)
            return
        except OSError:  # reset while it is written
            pass
        status = 0 if answer is None else answer.status
        statuses[status] = statuses.get(status, 0) + 1
        check_answer(attack, answer, by_path[attack.path], findings)

    async def worker() -> None:
        for i in left:
            if not victim.alive():
                return
            await one(mutator.next())
            if i % 50 == 0:
                await expected.check(names[i // 50 % len(names)])
            if i % 10000 == 9999:
                print(f"  {i + 1} requests, {victim.memory_mb():.0f} MB", flush=True)

    await asyncio.gather(*(worker() for _ in range(at_once)))
    return statuses


async def slow(victim: Victim, count: int, seed: int, expected: Expected, findings: Findings) -> None:
    """Clients that keep the server waiting, each in one of six ways, all at once. It has to close them in time."""
    known = next(iter(expected.known.values()))
    head = f"POST {known.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    request = f"{head}{len(known.body)}\r\n\r\n{known.body}".encode()
    end_of_head = request.index(b"\r\n\r\n") + 4
    draw = random.Random(seed)

    async def drip(connection: Connection, data: bytes) -> None:
        for i in range(len(data)):
            await connection.send(data[i : i + 1])
            await asyncio.sleep(0.2 * victim.patience)

    async def one(way: int) -> None:
        try:
            async with Connection(victim.port) as connection:
                if way == 0:
                    await drip(connection, request)
                elif way == 1:
                    await connection.send(request[:end_of_head])
                    await drip(connection, request[end_of_head:])
                elif way == 2:
                    await connection.send(request[: draw.randrange(1, end_of_head)])
                elif way == 3:
                    await connection.send(request[: draw.randrange(end_of_head, len(request))])
                elif way == 4:
                    await connection.send(request)
                    connection.writer.write_eof()
                # way 5: nothing is sent
                await asyncio.wait_for(connection.reader.read(), 30 * victim.patience)  # to the end
        except (TimeoutError, asyncio.TimeoutError):
            findings.add(f"slow client, way {way}: the server does not close the connection")
        except OSError:
            pass

    over = asyncio.Event()
    asking = asyncio.create_task(expected.keep_asking(over, 0.05))
    await asyncio.gather(*(one(i % 6) for i in range(count)))
    over.set()
    await asking


def streams(kinds: dict[str, str]) -> list[tuple[str, str]]:
    """Path and body of requests with long streams."""
    found = []
    if name := kinds.get("language_model"):
        body = {"model": name, "prompt": "The old dog ", "max_tokens": 200, "n": 2, "stream": True}
        found.append(("/v1/completions", json.dumps(body)))
    if name := kinds.get("translation"):
        found.append(("/v1/translate", json.dumps({"model": name, "text": [SENTENCE] * 4, "stream": True})))
    return found


async def disconnects(
    victim: Victim, kinds: dict[str, str], count: int, at_once: int, seed: int, findings: Findings
) -> None:
    """Streams whose clients go at random: some before the answer begins, some within it, by FIN or by reset."""
    draw, left, requests = random.Random(seed), iter(range(count)), streams(kinds)

    async def one() -> None:
        path, body = draw.choice(requests)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        data = (head + body).encode()
        try:
            async with Connection(victim.port) as connection:
                await connection.send(data[: draw.choice((len(data), len(data), len(data), draw.randrange(len(data))))])
                if draw.random() < 0.5:
                    await asyncio.sleep(draw.random() ** 2 * 0.2)
                else:
                    await asyncio.wait_for(connection.reader.read(draw.randrange(1, 4000)), 10 * victim.patience)
                connection.close(reset=draw.random() < 0.5)
        except (asyncio.TimeoutError, OSError):
            pass  # of a request that was cut off

    async def worker() -> None:
        for _ in left:
            if not victim.alive():
                return
            await one()

    await asyncio.gather(*(worker() for _ in range(at_once)))
    if victim.alive() and (busy := victim.what_does_not_rest(10)):
        findings.add(f"after {count} disconnects: {busy}")


async def kills(victim: Victim, times: int, expected: Expected, findings: Findings) -> list[float]:
    """SIGKILL and restart under load. Returns the seconds until the server was ready again."""
    over = asyncio.Event()
    load = [asyncio.create_task(expected.keep_asking(over, 0.001, may_fail=True)) for _ in range(16)]
    taken = []
    for _ in range(times):
        await asyncio.sleep(1 * victim.patience)
        victim.kill()
        try:
            taken.append(await asyncio.to_thread(victim.start))
        except RuntimeError as error:
            findings.add(f"after SIGKILL: {error}")
            break
    await asyncio.sleep(1)
    over.set()
    await asyncio.gather(*load)
    return taken


class ReplacedModel:
    """A model that is served through a link, which leads to one folder or another."""

    def __init__(self, name: str, link: Path, first: Path, second: Path, broken: Path):
        self.name, self.link, self.folders, self.broken = name, link, (first, second), broken
        shutil.copytree(second, broken)
        weights = broken / "model.safetensors"
        with open(weights, "r+b") as file:
            file.truncate(weights.stat().st_size // 2)
        self.point_to(first)

    def point_to(self, folder: Path) -> None:
        following = self.link.with_name("next")
        following.symlink_to(folder.resolve())
        os.replace(following, self.link)


async def replaced(victim: Victim, model: ReplacedModel, times: int, expected: Expected, findings: Findings) -> None:
    """The folder changes under load, by SIGHUP and by /admin/reload, also to one that is broken. All requests are
    answered, by the model before or by the one after."""
    known = expected.known[model.name]

    async def ask_for_reload(number: int) -> None:
        if number % 2 == 0:
            victim.process.send_signal(signal.SIGHUP)
        else:
            await ask(victim.port, "/admin/reload", "")

    async def switched(number: int, folder: Path, line: str) -> bool:
        """Whether the server says so."""
        before = sum(line in text for text in victim.log_lines())
        model.point_to(folder)
        await ask_for_reload(number)
        end = time.monotonic() + 30 * victim.patience
        while sum(line in text for text in victim.log_lines()) <= before:
            if time.monotonic() > end:
                findings.add(f"reload {number}: the log does not say {line!r}")
                return False
            await asyncio.sleep(0.05)
        return True

    first = expected.answers[model.name][0]
    if not await switched(0, model.folders[1], f"{model.name}: loaded again"):
        return
    second = known.answer(victim)
    if second == first:
        findings.add(f"{model.name}: the two folders have the same answer, so that nothing is shown")
    expected.answers[model.name] = [first, second]
    over = asyncio.Event()
    load = [asyncio.create_task(expected.keep_asking(over, 0.001)) for _ in range(8)]
    for number in range(1, times + 1):
        at = number % 2
        if number % 3 == 0:
            await switched(number, model.broken, f"{model.name}: stays as it is")
        if await switched(number, model.folders[1 - at], f"{model.name}: loaded again") and await asyncio.to_thread(
            known.answer, victim
        ) != (second if 1 - at else first):
            findings.add(f"reload {number}: the answer is not that of the new folder")
    over.set()
    await asyncio.gather(*load)
    if times % 2 == 0:  # an odd number has ended with the first folder
        await switched(times + 1, model.folders[0], f"{model.name}: loaded again")
    expected.answers[model.name] = [first]
