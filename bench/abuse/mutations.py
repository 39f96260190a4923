"""Requests that no client should send: valid ones of every route of /openapi.json, with one thing wrong or several."""

import json
import random
from typing import NamedTuple
from urllib.parse import urlencode

BODY_BYTES = 4 << 20  # that the server takes
TEXTS = (
    "The old dog sleeps in the garden .",
    "",
    " ",
    "\u0000\u0001\u001f",
    "e\u0301 \u202e \U0001f600 \ufeff",
    "\ud800",
    "<b>bold <i>and</b> wrong &amp; &#0; &#x110000;",
    "../../etc/passwd",
    "\n" * 500,
    "a" * 5000,
    "word " * 2000,
)
NUMBERS = (0, -1, 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, -1e308, 1e-320)
LITERALS = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "0x10", "01", "+1", "1.", ".5", "1e", "nul", "'a'", "")
TYPES = (
    "text/plain",
    "application/json; charset=utf-16",
    "application/xml",
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "multipart/form-data; boundary=b",
    "application/x-www-form-urlencoded",
    "a" * 5000,
    "/;=,",
)
LENGTHS = ("-1", "abc", "1e3", "99999999999999999999999", "18446744073709551616", "0x10", "", "+5", "5 5", "5, 6")
CHUNK_SIZES = (b"FFFFFFFFFFFFFFFFF", b"-1", b"", b"7FFFFFFFFFFFFFFF", b"zz", b"5;a=" + b"b" * 3000)
HEADERS = (
    "X-Timeout: nan",
    "X-Timeout: -1",
    "X-Timeout: 1e400",
    "X-Timeout: 0.001",
    "Expect: 100-continue",
    "Expect: 200-maybe",
    "Connection: upgrade\r\nUpgrade: h2c",
    "Authorization: Bearer " + "k" * 4000,
    "X-Request-Id: " + "i" * 500,
    "Range: bytes=0-0",
    "Accept-Encoding: gzip, br",
    "Cookie: " + "c=d; " * 3000,
    "Transfer-Encoding: gzip",
    "Host: other",
    " folded: line",
    "no colon",
    ": no name",
    "Name\x00: zero",
)
REQUEST_LINES = (
    b"get %s HTTP/1.1",
    b"POST %s HTTP/9.9",
    b"POST %s HTTP/1.0",
    b"POST %s",
    b"POST  %s  HTTP/1.1",
    b"DELETE %s HTTP/1.1",
    b"BREW %s HTTP/1.1",
    b"CONNECT %s HTTP/1.1",
    b"OPTIONS %s HTTP/1.1",
    b"HEAD %s HTTP/1.1",
    b"POST http://elsewhere%s HTTP/1.1",
    b"POST %s%%00 HTTP/1.1",
    b"POST %s/../../etc/passwd HTTP/1.1",
    b"POST %s?" + b"q" * 20000 + b" HTTP/1.1",
    b"\x16\x03\x01\x02\x00%s",
    b"PRI * HTTP/2.0%s",
    b"\xff\xfe%s HTTP/1.1",
)


class Attack(NamedTuple):
    path: str
    data: bytes
    kind: str
    # Whether the server can read it as one whole request, so that it owes an answer.
    whole: bool


class Route(NamedTuple):
    method: str
    path: str
    schema: dict | None  # of the body
    model: str  # that it asks, where one is known
    statuses: set[int]


MODEL_OF_TAG = {"translation": "translation", "language models": "language_model", "embeddings": "embedding"}
MODEL_OF_TAG["classification"] = "classifier"


def routes_of(document: dict, kinds: dict[str, str]) -> list[Route]:
    """`kinds`: the name of a model for each kind."""
    found = []
    for path, by_method in document["paths"].items():
        if path == "/admin/reload":
            continue  # loads models, on purpose elsewhere
        for method, of in by_method.items():
            body = of.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            model = kinds.get(MODEL_OF_TAG.get(of["tags"][0], ""), "")
            found.append(Route(method.upper(), path, body, model, {int(s) for s in of["responses"]}))
    return found


class Mutator:
    def __init__(self, document: dict, routes: list[Route], seed: int):
        self.document, self.routes, self.draw = document, routes, random.Random(seed)
        self.of_json = (self.wrong_type, self.wrong_number, self.deep, self.wrong_fields, self.strange_text, self.literal)
        self.of_body = (self.flipped, self.truncated_body, self.inserted, self.not_utf8, self.form, self.multipart)
        self.of_http = (self.wrong_length, self.wrong_type_header, self.chunked, self.broken_chunks, self.strange_header)
        self.of_http += (self.request_line, self.flipped_head, self.cut_off, self.pipelined, self.many_headers)

    def next(self) -> Attack:
        with_bodies = [r for r in self.routes if r.schema]
        route = self.draw.choice(with_bodies if self.draw.random() < 0.9 else self.routes)
        body = self.sample(route.schema, "", route) if route.schema else None
        groups = (self.of_json, self.of_body, self.of_http) if body is not None else (self.of_http,)
        return self.draw.choice(self.draw.choice(groups))(route, body)

    # Valid bodies.

    def resolved(self, schema: dict) -> dict:
        while "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def sample(self, schema: dict, name: str, route: Route) -> object:
        """What the schema admits, of moderate size."""
        draw, schema = self.draw, self.resolved(schema)
        if "oneOf" in schema:
            return self.sample(draw.choice(schema["oneOf"]), name, route)
        if "enum" in schema:
            return draw.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            required = schema.get("required", [])
            chosen = [n for n in schema.get("properties", {}) if n in required or draw.random() < 0.25]
            return {n: self.sample(schema["properties"][n], n, route) for n in chosen}
        if kind == "array":
            return [self.sample(schema["items"], name, route) for _ in range(draw.randint(schema.get("minItems", 1), 2))]
        if kind == "integer":
            return schema.get("minimum", 0) + draw.randrange(8)
        if kind == "number":
            return draw.choice((1, 0.5, 10)) if name != "timeout" else 20
        if kind == "boolean":
            return draw.random() < 0.5
        return {"model": route.model, "source": "en", "target": "de"}.get(name, TEXTS[0])

    # What is wrong in the JSON.

    def places(self, value: object) -> list[tuple[object, object]]:
        """Every list and object with each of its keys."""
        found = []
        if isinstance(value, (dict, list)):
            for key in value if isinstance(value, dict) else range(len(value)):
                found += [(value, key), *self.places(value[key])]
        return found

    def replaced(self, route: Route, body: object, value: object) -> bytes:
        places = self.places(body)
        if not places:
            return json.dumps(value).encode()
        holder, key = self.draw.choice(places)
        holder[key] = value
        return json.dumps(body).encode("utf-8", "surrogatepass")

    def wrong_type(self, route: Route, body: object) -> Attack:
        value = self.draw.choice((None, True, "7", 7, [], {}, [None], {"a": 1}, [[1]], [1, "a"], 1.5))
        return self.whole(route, self.replaced(route, body, value), "wrong type")

    def wrong_number(self, route: Route, body: object) -> Attack:
        return self.whole(route, self.replaced(route, body, self.draw.choice(NUMBERS)), "number")

    def strange_text(self, route: Route, body: object) -> Attack:
        value = self.draw.choice(TEXTS)
        if self.draw.random() < 0.3:
            value = [value] * self.draw.choice((0, 3, 1025))
        return self.whole(route, self.replaced(route, body, value), "text")

    def literal(self, route: Route, body: object) -> Attack:
        text = self.replaced(route, body, "PLACE").replace(b'"PLACE"', self.draw.choice(LITERALS).encode())
        return self.whole(route, text, "literal")

    def deep(self, route: Route, body: object) -> Attack:
        depth = self.draw.choice((63, 64, 65, 1000, 100000))
        begin, end = self.draw.choice(((b"[", b"]"), (b'{"a":', b"}")))
        nested = begin * depth + b"1" + end * self.draw.choice((0, depth, depth))
        return self.whole(route, self.replaced(route, body, "PLACE").replace(b'"PLACE"', nested), "deep")

    def wrong_fields(self, route: Route, body: object) -> Attack:
        if not isinstance(body, dict):
            return self.wrong_type(route, body)
        way = self.draw.randrange(4)
        if way == 0 and body:
            del body[self.draw.choice(list(body))]
        elif way == 1:
            body[self.draw.choice(("unknown", "", "\u0000", "k" * 3000, "tools", "Model"))] = 1
        elif way == 2:
            body |= {f"key{i}": i for i in range(self.draw.choice((10, 5000)))}
        text = json.dumps(body)
        if way == 3:
            text = text[:-1] + ", " + text[1:]  # every key twice
        return self.whole(route, text.encode(), "fields")

    # What is wrong in the bytes of the body.

    def flipped(self, route: Route, body: object) -> Attack:
        data = bytearray(json.dumps(body).encode())
        for _ in range(self.draw.randint(1, 4)):
            data[self.draw.randrange(len(data))] ^= 1 << self.draw.randrange(8)
        return self.whole(route, bytes(data), "flipped")

    def truncated_body(self, route: Route, body: object) -> Attack:
        data = json.dumps(body).encode()
        return self.whole(route, data[: self.draw.randrange(len(data))], "truncated")

    def inserted(self, route: Route, body: object) -> Attack:
        data = json.dumps(body).encode()
        place = self.draw.randrange(len(data) + 1)
        return self.whole(route, data[:place] + self.draw.randbytes(self.draw.randint(1, 20)) + data[place:], "inserted")

    def not_utf8(self, route: Route, body: object) -> Attack:
        bad = self.draw.choice((b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80"))
        return self.whole(route, self.replaced(route, body, "PLACE").replace(b"PLACE", b"a " + bad), "not UTF-8")

    def form(self, route: Route, body: object) -> Attack:
        fields = {n: v if isinstance(v, (str, list)) else json.dumps(v) for n, v in body.items()}
        data = bytearray(urlencode(fields, doseq=True).encode())
        if self.draw.random() < 0.7 and data:
            for _ in range(self.draw.randint(1, 4)):
                data[self.draw.randrange(len(data))] = self.draw.choice(b"%&=+;\xff\x00")
        return self.whole(route, bytes(data), "form", "application/x-www-form-urlencoded")

    def multipart(self, route: Route, body: object) -> Attack:
        parts = "".join(
            f'--b\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v if isinstance(v, str) else json.dumps(v)}\r\n'
            for n, v in body.items()
        )
        data = bytearray((parts + "--b--\r\n").encode())
        for _ in range(self.draw.randrange(4)):
            place = self.draw.randrange(len(data))
            if self.draw.random() < 0.5:
                data[place] = self.draw.choice(b'-\r\n";:\x00')
            else:
                del data[place : place + self.draw.randint(1, 40)]
                data += b"-"
        return self.whole(route, bytes(data), "multipart", "multipart/form-data; boundary=b")

    # What is wrong in HTTP.

    def whole(self, route: Route, body: bytes, kind: str, content_type: str = "application/json") -> Attack:
        data = self.message(route, body, [f"Content-Type: {content_type}"])
        return Attack(route.path, data, kind, len(body) <= BODY_BYTES)

    def message(self, route: Route, body: bytes, headers: list[str], length: str | None = None) -> bytes:
        """`length`: of the header, "" for none."""
        lines = [f"{route.method} {route.path} HTTP/1.1", "Host: localhost", *headers]
        length = str(len(body)) if length is None else length
        if length:
            lines.append(f"Content-Length: {length}")
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body

    def body_of(self, body: object) -> bytes:
        return b"" if body is None else json.dumps(body).encode()

    def wrong_length(self, route: Route, body: object) -> Attack:
        data = self.body_of(body)
        lengths = (*LENGTHS, str(len(data) + 1), str(len(data) + 5_000_000), str(max(0, len(data) - 1)))
        length = self.draw.choice(lengths)
        headers = ["Content-Type: application/json"]
        headers += [f"Content-Length: {len(data)}"] if self.draw.random() < 0.3 else []
        return Attack(route.path, self.message(route, data, headers, length), "length", False)

    def wrong_type_header(self, route: Route, body: object) -> Attack:
        return self.whole(route, self.body_of(body), "content type", self.draw.choice(TYPES))

    def chunks(self, data: bytes) -> list[bytes]:
        size = self.draw.choice((1, 7, 4096))
        return [data[i : i + size] for i in range(0, len(data), size)]

    def chunked(self, route: Route, body: object) -> Attack:
        data = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in self.chunks(self.body_of(body))) + b"0\r\n\r\n"
        headers = ["Content-Type: application/json", "Transfer-Encoding: chunked"]
        return Attack(route.path, self.message(route, data, headers, ""), "chunked", True)

    def broken_chunks(self, route: Route, body: object) -> Attack:
        pieces = [b"%x\r\n%s\r\n" % (len(c), c) for c in self.chunks(self.body_of(body))] + [b"0\r\n\r\n"]
        place = self.draw.randrange(len(pieces))
        pieces[place] = self.draw.choice((b"", self.draw.choice(CHUNK_SIZES) + b"\r\n\r\n", pieces[place][:-1], b"\r\n"))
        headers = ["Content-Type: application/json", "Transfer-Encoding: chunked"]
        length = self.draw.choice(("", "5"))  # both is wrong too
        return Attack(route.path, self.message(route, b"".join(pieces), headers, length), "broken chunks", False)

    def strange_header(self, route: Route, body: object) -> Attack:
        headers = ["Content-Type: application/json", *self.draw.sample(HEADERS, self.draw.randint(1, 3))]
        return Attack(route.path, self.message(route, self.body_of(body), headers), "header", False)

    def many_headers(self, route: Route, body: object) -> Attack:
        headers = [f"X-{i}: {i}" for i in range(self.draw.choice((100, 400, 5000)))]
        return Attack(route.path, self.message(route, self.body_of(body), headers), "many headers", False)

    def request_line(self, route: Route, body: object) -> Attack:
        data = self.message(route, self.body_of(body), ["Content-Type: application/json"])
        line = self.draw.choice(REQUEST_LINES).replace(b"%s", route.path.encode()).replace(b"%%", b"%")
        return Attack(route.path, line + data[data.index(b"\r\n") :], "request line", False)

    def flipped_head(self, route: Route, body: object) -> Attack:
        data = bytearray(self.message(route, self.body_of(body), ["Content-Type: application/json"]))
        end = data.index(b"\r\n\r\n")
        for _ in range(self.draw.randint(1, 3)):
            data[self.draw.randrange(end)] ^= 1 << self.draw.randrange(8)
        return Attack(route.path, bytes(data), "flipped head", False)

    def cut_off(self, route: Route, body: object) -> Attack:
        data = self.message(route, self.body_of(body), ["Content-Type: application/json"])
        return Attack(route.path, data[: self.draw.randrange(len(data))], "cut off", False)

    def pipelined(self, route: Route, body: object) -> Attack:
        data = self.message(route, self.body_of(body), ["Content-Type: application/json"])
        return Attack(route.path, data * self.draw.choice((2, 5, 30)), "pipelined", True)
