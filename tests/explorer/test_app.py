"""The app around the page: its arguments, the models' loading, its files, what it adds to Gradio's HTML."""

import itertools
import json
import shutil
import socket
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import app
from decoders.models.catalog import shipped, with_weights
from decoders.refusal import Refusal
from explorer.catalog import recorded_runs
from explorer.export import page_files
from explorer.export.run_file import unpack
from explorer.page import serve
from explorer.page.layout import first_data, server_functions
from explorer.page.save_and_open import save_file
from explorer.page_requests import Save
from explorer.runs.lane_factory import lane_maker
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import NoLane, Runs
from explorer.runs.validation import check
from tests.helpers import tiny_models
from tests.helpers.scripted_lane import ScriptedLane
from tests.helpers.server_calls import ask

ROOT = Path(app.__file__).parent


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--port", "0"], "--port must be a number from 1 to 65535"),
        (["--port", "many"], "invalid int value"),
        (["--device", "abacus"], "invalid choice"),
        (["--model", "no-such-model"], "There is no model 'no-such-model'"),
        (["--draft", "./nowhere"], "There is no model './nowhere'"),
        (["--colour", "red"], "unrecognized arguments"),
    ],
)
def test_unusable_arguments_end_with_a_sentence_and_status_2(given, says, capsys):
    sound = ["--model", "owner/model", "--draft", "none"]
    with pytest.raises(SystemExit) as ended:
        app.arguments([*sound, *given])
    assert ended.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ([], {}, None),
        (["--host", "localhost"], {}, None),
        (["--host", "0.0.0.0"], {}, "embedded"),
        (["--share"], {}, "embedded"),
        ([], {"GRADIO_SERVER_NAME": "0.0.0.0"}, "embedded"),
        ([], {"GRADIO_SHARE": "True"}, "embedded"),
        (["--host", "0.0.0.0", "--models", "any"], {}, None),
        (["--models", "embedded"], {}, "embedded"),
        (["--models", "llama-tiny, owner/model@v1"], {}, {"llama-tiny", "owner/model@v1"}),
    ],
)
def test_strangers_choose_only_what_comes_with_the_app(given, environment, expected, monkeypatch):
    for name in ("GRADIO_SERVER_NAME", "GRADIO_SHARE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    allowed = app.arguments([*given]).allowed
    assert allowed == (frozenset(shipped()) if expected == "embedded" else expected)


def test_a_port_in_use_is_a_sentence_and_status_2(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = ["--port", str(taken.getsockname()[1]), "--model", "owner/model", "--draft", "none"]
        assert app.main(given) == 2
    said = capsys.readouterr().err
    assert said == f"Port {given[1]} is taken by another program; choose another --port.\n"


@pytest.mark.parametrize("host", ["203.0.113.9", "nowhere.invalid"])
def test_an_address_that_this_machine_does_not_have_is_a_sentence(host, capsys):
    assert app.main(["--host", host, "--model", "owner/model", "--draft", "none"]) == 2
    assert capsys.readouterr().err == f"This machine cannot listen at {host!r}; choose another --host.\n"


def test_models_that_cannot_be_loaded_are_a_sentence_for_every_run(tmp_path):
    (tmp_path / "config.json").write_text("{}", "utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"")
    loader = Loader(str(tmp_path), None, "cpu")
    loader.load()
    assert (
        loader.state == "failed" and "could not be loaded" in loader.sentence and "\n" not in loader.sentence
    )
    with pytest.raises(ValueError, match="could not be loaded"):
        lane_maker(loader)(check({"prompt": "Once", "max_new_tokens": 4, "lanes": [{"strategy": "greedy"}]}))


def test_a_lane_that_cannot_be_made_says_why_in_its_place_and_the_others_run():
    loader = Loader("tiny", None)
    loader.models, loader.state = {"target": tiny_models.make(endings=0.0)}, "ready"
    loader.done.set()
    lane = {"strategy": "greedy", "parameters": {}, "seed": 0}
    request = {"prompt": "Once", "max_new_tokens": 4, "lanes": [lane, {**lane, "strategy": "speculative"}]}
    made, refused = lane_maker(loader)(check(request))
    assert made.run().ended == "Reached max_new_tokens = 4."
    with pytest.raises(Refusal, match="needs a draft model"):
        refused.run()
    runs = Runs(lane_maker(loader))
    run = runs.start(check(request), "me", "paused")
    assert run.refused == [None, refused.trace.ended] and len(run.open_lanes()) == 1
    data = save_file(runs, run, Save(session="me" * 8, run=run.id, form="run")).data
    assert [trace.ended for trace in unpack(data)[1]] == run.refused  # a saved run says it, too
    with pytest.raises(NoLane, match="No lane can run") as none:
        runs.start(check({**request, "lanes": [request["lanes"][1]] * 2}), "me")
    assert none.value.reasons == [refused.trace.ended] * 2
    runs.close()


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        ("llama-tiny", "llama-tiny-draft-distilled"),
        ("llama-tiny:bits=4", "llama-tiny-draft-distilled"),
        ("http://127.0.0.1:9/v1#llama-tiny", "llama-tiny-draft-distilled"),
        ("llama-tiny-verilog", "none"),
        ("owner/model", "none"),
        ("http://127.0.0.1:9/v1#owner/model", "none"),
        ("foreign folder", "none"),
        ("copy of llama-tiny", "llama-tiny-draft-distilled"),
    ],
)
def test_the_shipped_draft_is_only_for_targets_with_its_tokens(target, draft, tmp_path):
    if target == "foreign folder":
        target = tiny_models.save(tmp_path)
    if target == "copy of llama-tiny":
        target = str(shutil.copytree(with_weights("llama-tiny"), tmp_path / "copy"))
    assert app.arguments(["--model", target]).draft == draft
    assert app.arguments(["--model", target, "--draft", "llama-tiny-draft"]).draft == "llama-tiny-draft"


def test_the_stored_run_is_real_and_whole():
    setup, traces = recorded_runs.setup(), recorded_runs.traces()
    assert [t.strategy for t in traces] == [lane["strategy"] for lane in setup["lanes"]] and len(traces) == 2
    for trace in traces:
        assert trace.ended and len(trace.output()) == setup["max_new_tokens"] and trace.costs.seconds > 0
        assert b"".join(trace.vocabulary[t] for t in trace.prompt).decode() == setup["prompt"]
    assert [d["name"] for d in setup["declarations"]] == list(recorded_runs.OPENING)
    assert {t.strategy for t in traces} <= set(recorded_runs.OPENING)
    assert {role: name for t in traces for role, name in t.models.items()} == recorded_runs.MODELS
    assert all(p["title"] and p["prompt"] for p in recorded_runs.prompts())


@pytest.fixture
def served():
    """A client of a small app with our files and our middleware around a page like Gradio's."""
    runs = Runs(lambda request: [ScriptedLane([b" a"])])
    first = first_data(runs, Loader("tiny </script><b>", None), "", [])
    script = '<script type="module" crossorigin src="./assets/index-1.js"></script>'
    card = '<meta\n\tproperty="og:image"\n\tcontent="https://elsewhere.example/x.jpg"\n/>'
    card += '<meta name="twitter:title" content="Gradio" />'
    page = f"<head>{card}{script}</head><body><gradio-app></gradio-app>"
    made = itertools.count(1)
    routes = [
        Route("/", lambda request: HTMLResponse(page, headers={"x-made": str(next(made))})),
        Route("/other", lambda request: PlainTextResponse("<head><gradio-app")),
        *serve.routes(),
    ]
    return TestClient(Starlette(routes=routes, middleware=serve.middleware(first)))


def test_the_page_carries_its_data_and_lets_our_scripts_go_first(served):
    html = served.get("/").text
    assert html.index('id="explorer-data"') < html.index("/player?") < html.index("<gradio-app>")
    assert (
        'rel="modulepreload" crossorigin href="./assets/index-1.js"' in html and 'type="module"' not in html
    )
    data = html.split('id="explorer-data">')[1].split("</script>")[0]
    assert "<" not in data and json.loads(data)["models"]["target"] == "tiny </script><b>"
    assert len(json.loads(data)["example"]["answer"]["lanes"][0]["rows"]) == 40
    assert served.get("/other").text == "<head><gradio-app"


def test_a_link_preview_has_our_title_and_a_picture_that_is_there(served):
    html = served.get("/").text
    assert "elsewhere.example" not in html and "twitter:title" not in html
    assert '<meta property="og:title" content="Decoding Explorer">' in html
    picture = html.split('property="og:image" content="')[1].split('"')[0]
    assert picture.startswith("http://testserver/") and served.get(picture).content[1:4] == b"PNG"
    assert served.get(picture).headers["content-type"] == "image/png"


def test_every_file_of_the_page_is_served_in_four_requests_and_no_other(served):
    page, joined = served.get("/").text, b""
    for address in page.split('"'):
        if address.startswith(serve.PREFIX):
            answer = served.get("/" + address)
            joined += answer.content
            assert answer.status_code == 200 and len(answer.content) > 100
            assert "immutable" in answer.headers["cache-control"]
    for name in ("app-py", "..%2f..%2fapp.py", "palette-json", "style.css", "page-app-js"):
        assert served.get(f"/{serve.PREFIX}/{name}").status_code == 404
    assert page.count(serve.PREFIX) == 4  # styles, page, player, and the picture of the link preview
    own = page_files.own()
    assert len(own) > 40 and all(page_files.content(path) in joined for path in own)


def test_gradios_front_end_is_compressed_once_and_kept_by_browsers(served):
    script = max(serve.FRONT_END.glob("*.js"), key=lambda path: path.stat().st_size)
    small = served.get(f"/assets/{script.name}", headers={"accept-encoding": "gzip, br"})
    assert small.content == script.read_bytes() and small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < script.stat().st_size / 2
    assert serve.gzipped(script) is serve.gzipped(script)
    plain = served.get(f"/assets/{script.name}", headers={"accept-encoding": "identity"})
    assert plain.content == script.read_bytes() and "content-encoding" not in plain.headers
    font = next(serve.FRONT_END.glob("*.woff2"))
    assert served.get(f"/assets/{font.name}").content == font.read_bytes()
    for answer in (small, plain, served.get(f"/assets/{font.name}")):
        assert "immutable" in answer.headers["cache-control"]
    for name in ("none.js", "..%2findex.html", "%2e%2e%2f%2e%2e%2fpackage.json"):
        assert served.get(f"/assets/{name}").status_code == 404


def test_the_page_is_made_once_for_each_address(served):
    def asked(**headers: str) -> tuple[str, int]:
        answer = served.get("/", headers=headers)
        return answer.text, int(answer.headers["x-made"])

    first, made = asked()
    assert asked() == (first, made) and made == 1
    assert asked(**{"x-forwarded-host": "demo.example.org"})[1] == 2
    assert asked(**{"x-forwarded-for": "192.0.2.7"})[1] == 1  # another visitor behind a proxy
    there, made = asked(host="another")
    assert "http://another/" in there and "http://testserver/" not in there and made == 3
    assert asked() == (first, 1)
    assert served.get("/?lesson=1").headers["x-made"] == "4"
    assert [int(served.get("/?view=api").headers["x-made"]) for _ in range(2)] == [5, 6]
    for name in ("x-gradio-server", "X-Forwarded-Proto"):  # what one visitor claims is not told to others
        before = asked(**{name: "https"})[1]
        assert before > 6 and asked() == (first, 1)
    for number in range(serve.PAGES_KEPT + 1):
        asked(**{"x-forwarded-host": f"h{number}.example.org"})
    assert asked()[1] > 6  # made again: not all are kept


def test_the_page_is_sent_compressed_to_another_machine(served):
    def page_for(client: str):
        there = TestClient(served.app, client=(client, 50000))
        return there.get("/", headers={"accept-encoding": "gzip"})

    far, near = page_for("192.0.2.7"), page_for("127.0.0.1")
    assert far.headers["content-encoding"] == "gzip" and "content-encoding" not in near.headers
    assert far.text == near.text
    assert int(far.headers["content-length"]) < len(far.content) / 2


def test_a_call_with_nonsense_is_answered_with_a_sentence():
    runs = Runs(lambda request: [ScriptedLane([b" a"])])
    _, start, control, pull, trace, inspect, *_ = server_functions(runs, Loader("tiny", None))
    for function, request, kind in [
        (start, {}, "refused"),
        (control, {"run": 3, "action": "stop"}, "refused"),
        (control, {"run": "example", "action": "stop"}, "error"),
        (pull, {}, "refused"),
        (pull, {"run": "guess", "cursors": []}, "error"),
        (pull, {"run": "guess", "cursors": [{"view": "text", "ops": "many", "rows": 0}]}, "refused"),
        (trace, {"run": "guess", "lane": 0}, "error"),
        (inspect, {"run": "guess", "lane": 0, "node": "first"}, "refused"),
        (inspect, {}, "refused"),
    ]:
        answer = ask(function, request)
        assert answer.get("status", 422) == 422
        assert list(answer)[0] == kind and answer[kind].endswith(".") and "\n" not in answer[kind]
    runs.close()
