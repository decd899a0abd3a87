"""A server with OpenAI's endpoints on a model of this process: truthful, or with one fault."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, islice

import torch

from decoders.models.loaded_model import LoadedModel


class FakeServer:
    """`address` names its model. limit: the maximum number of log-probabilities, None for all. `change(row)`
    may falsify a row of an answer, `status` refuses every request, `raw` replaces any answer.
    `tells_prompts`: whether it also names tokens along a prompt; None: it does not know the option. `has`:
    the available endpoints. `texts`: whether completions name tokens by their texts.
    """

    tells_prompts: bool | None = True
    has: tuple[str, ...] = ("/v1/completions",)
    texts = False

    def __init__(self, model: LoadedModel, limit: int | None = None):
        self.model, self.limit, self.status, self.raw = model, limit, None, None
        self.change = lambda row: row
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.port = 0
        self.at_once, self.good_events, self.event = 1, None, None
        self.finished = 0  # streams that were sent to their ends

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def models(self) -> dict:
        return {"object": "list", "data": [{"id": "tiny", "max_model_len": 256}]}

    def completions(self, asked: dict) -> tuple[int, dict]:
        """Status and answer."""
        self.requests.append(asked)
        wanted = asked["top_logprobs"] if "messages" in asked else asked["logprobs"]
        if self.limit is not None and not 0 <= wanted <= self.limit:
            return 400, {"error": {"message": f"Requested {wanted} log-probabilities, at most {self.limit}."}}
        along = asked.get("prompt_logprobs")
        if along is not None and self.tells_prompts is False:
            return 400, {"error": {"message": "prompt_logprobs is not supported."}}
        if "messages" in asked or isinstance(asked["prompt"], str):
            return 200, {"choices": [{"index": 0, "logprobs": self.shape(asked, list(self.written(asked)))}]}
        choices = []
        for index, text in enumerate(asked["prompt"]):
            with torch.inference_mode():
                logits = self.model.model(torch.tensor([text])).logits[0]
            *rows, last = logits.double().log_softmax(-1)
            named = {self.named(t): v for t, v in likeliest(last, wanted).items()}
            choice = {"index": index, "logprobs": {"top_logprobs": [self.change(named)]}}
            if along is not None and self.tells_prompts:  # the token that follows is always among them
                follows = zip(rows, text[1:], strict=True)
                told = [likeliest(row, along) | {t: row[t].item()} for row, t in follows]
                told = [{str(t): {"logprob": v, "rank": 1} for t, v in row.items()} for row in told]
                choice["prompt_logprobs"] = [None, *map(self.change, told)]
            choices.append(choice)
        return 200, {"choices": choices[::-1]}  # in any order: the index counts

    def written(self, asked: dict) -> Iterator[tuple[int, dict[int, float]]]:
        """The model's own text: tokens, drawn by the seed, and their rows."""
        text, luck = self.read(asked), torch.Generator().manual_seed(asked.get("seed", 0))
        top = asked["top_logprobs"] if "messages" in asked else asked["logprobs"]
        for _ in range(asked["max_tokens"]):
            with torch.inference_mode():
                logprobs = self.model.model(torch.tensor([text])).logits[0, -1].double().log_softmax(-1)
            heat = asked.get("temperature", 1.0)
            probs = (logprobs / heat).softmax(-1) if heat else torch.eye(len(logprobs))[logprobs.argmax()]
            text.append(int(torch.multinomial(probs, 1, generator=luck)))
            yield text[-1], likeliest(logprobs, top) | {text[-1]: logprobs[text[-1]].item()}
            if text[-1] in self.model.eos:
                return

    def read(self, asked: dict) -> list[int]:
        """The tokens of a prompt: ids, a text, or the last message of a chat."""
        prompt = asked["messages"][-1]["content"] if "messages" in asked else asked["prompt"]
        return self.model.encode(prompt) if isinstance(prompt, str) else list(prompt)

    def named(self, token: int) -> str:
        """A token in the form of completions."""
        if not self.texts:
            return f"token_id:{token}"
        piece = self.model.bytes_of(token)
        try:
            return piece.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)

    def shape(self, asked: dict, written: list[tuple[int, dict]], falsified=dict) -> dict:
        """Tokens and their rows, in the form of completions or of a chat."""
        if "messages" not in asked:
            return {
                "tokens": [self.named(t) for t, _ in written],
                "token_logprobs": [row[t] for t, row in written],
                "top_logprobs": [falsified({self.named(t): v for t, v in r.items()}) for _, r in written],
            }
        bytes_of, content = self.model.bytes_of, []
        for token, row in written:
            tops = falsified({bytes_of(t): v for t, v in row.items()})
            entry = chat_entry(bytes_of(token), row[token])
            content.append(entry | {"top_logprobs": [chat_entry(*one) for one in tops.items()]})
        return {"content": content}

    def events(self, asked: dict) -> Iterator[bytes]:
        """The lines of a stream, with `at_once` tokens per event. After `good_events` comes its fault:
        falsified rows, another `event`, or the end (b"").
        """
        self.requests.append(asked)
        written = self.written(asked)
        for number in count():
            if number == self.good_events and self.event is not None:
                if not self.event:
                    return
                yield b"data: " + self.event + b"\n\n"
            if not (some := list(islice(written, self.at_once))):
                break
            falsified = self.change if number >= (self.good_events or 0) else dict
            logprobs = self.shape(asked, some, falsified)
            choice = {"index": 0, "text": "x", "logprobs": logprobs, "finish_reason": None}
            yield b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
        self.finished += 1
        yield b'data: {"choices": [], "usage": {}}\n\ndata: [DONE]\n\n'


def chat_entry(piece: bytes, value: float) -> dict:
    """A token in the form of a chat."""
    return {"token": piece.decode("utf-8", "replace"), "bytes": list(piece), "logprob": value}


def likeliest(logprobs: torch.Tensor, count: int) -> dict[int, float]:
    """The `count` most likely tokens of a row [V], all below 0."""
    top = logprobs.topk(len(logprobs) if count < 0 else count)
    return dict(zip(top.indices.tolist(), top.values.tolist(), strict=True))


@contextmanager
def fake_server(model: LoadedModel, limit: int | None = None) -> Iterator[FakeServer]:
    """The server, while this is open."""
    fake = FakeServer(model, limit)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or each answer's body waits 40 ms after its header

        def do_GET(self) -> None:
            self.answer(200, fake.models())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path not in fake.has:
                self.answer(404, {"detail": "Not Found"})
                return
            if not body.get("stream") or fake.status or fake.raw:
                self.answer(*((200, {}) if body.get("stream") else fake.completions(body)))
                return
            fake.headers.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            with suppress(OSError):  # whoever asked has gone
                for event in fake.events(body):
                    self.wfile.write(event)
                    self.wfile.flush()

        def answer(self, status: int, answer: dict) -> None:
            fake.headers.append(dict(self.headers))
            status = fake.status or status
            body = json.dumps(answer).encode() if fake.raw is None else fake.raw
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):  # whoever asked has gone
                self.wfile.write(body)

        def log_message(self, *given) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
