"""Branches: a new lane that keeps the text before a token, forces another token there, and decodes on.

On the canvas of a diffusion model, the new lane has one more word fixed from the start. A branch keeps its
parent's strategy, parameters and seed; its prompt tokens come from the parent's trace and are not tokenized
again.
"""

import asyncio
from typing import Any

from decoders.refusal import Refusal
from decoders.trace import given_tokens as beginnings
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace
from explorer.page_requests import Branch
from explorer.runs.callbacks import CALLBACKS
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Run, Runs
from explorer.runs.validation import MAX_NEW_TOKENS, as_json, new_tokens

MAX_TYPED = 2000  # characters of a text that is typed to be forced


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_branch(request: Branch) -> str:
        """`{run, lane, node | position, token | text, max_new_tokens, session, replace?}` gives `{run, lane,
        setup, flag?}`; `flag`: where it branched off, and with which token.

        The new lane forces `token`, or the typed `text`, in place of `node`, or fixes it at `position` of its
        canvas. The returned `run` is a copy if the request named the stored example, which all pages share.
        """
        return await as_json(asyncio.to_thread(branch, runs, loader, request))

    return [explorer_branch]


def branch(runs: Runs, loader: Loader, request: Branch) -> dict:
    """Starts the lane, see `explorer_branch`. Raises Refusal with one sentence."""
    run = runs.find(request.run)
    trace, limit = run.lane(request.lane).trace, new_tokens(request.max_new_tokens)
    chosen = loader.find(run.models)
    models = check_models_of_trace(trace, chosen.wait())
    begin, parameters = beginnings.of(trace), trace.parameters
    if request.node is None:
        words = with_fixed_word(trace, request, models["target"], limit)
        parameters = parameters | {"fixed_words": words}
    else:
        before = text_before(trace, request.node)
        begin = branch_begin(trace, before, forced_tokens(trace, before, models["target"], request))
    if begin and len(begin["tokens"]) >= limit:
        raise Refusal(
            f"Nothing would be left to decode: the lane can write {limit} tokens and would begin with "
            f"{len(begin['tokens'])}. Branch earlier, type less, or run with more tokens."
        )

    def make() -> Any:
        from decoders.lane import Lane, Limits  # torch is loaded by now

        same = (trace.strategy, trace.prompt, models, parameters, trace.seed)
        lane = Lane(*same, Limits(max_new_tokens=limit), begin=begin, callbacks=CALLBACKS)
        chosen.lanes.add(lane)
        return lane

    own = own_run(runs, run, request.session)
    index = runs.add_lane(own, make, request.replace)
    made = {"run": own.id, "lane": index, "setup": setup(trace, parameters, begin)}
    if request.node is not None:
        place, forced = len(before) + 1, begin["tokens"][len(before)]
        made["flag"] = f"token {place}: {visible(models['target'].bytes_of(forced))}"
    return made


def own_run(runs: Runs, run: Run, session: str) -> Run:
    """Returns `run`, or a copy of it for this session if it is the stored example, which no session owns."""
    return run if run.session else runs.show([record.trace for record in run.records], session)


def check_models_of_trace(trace: Trace, models: dict) -> dict:
    """Returns `models` if the trace was decoded with them; otherwise raises Refusal with one sentence."""
    from decoders.registry import strategies

    known = strategies().get(trace.strategy)
    kind = known.writes_with if known else "causal"
    for role, name in trace.models.items():
        if role not in models:
            raise Refusal(f"This lane was decoded with the {role} model {name}; choose one under Models.")
        used = models[role].companion(kind) if role == "target" else models[role]
        if used is None or used.name != name:
            raise Refusal(
                f"This lane was decoded with the {role} model {name}; the app has {models[role].name}. "
                "Press Run to decode with that, then branch."
            )
    if max(trace.prompt) >= models["target"].engine.vocabulary:
        raise Refusal(
            "The prompt of this trace has tokens that the model lacks; choose the trace's model under Models."
        )
    return models


def text_before(trace: Trace, node: int) -> list[int]:
    """The nodes between the prompt and `node`, in order. Refusal if `node` is part of the prompt."""
    nodes, trunk = trace.nodes(), len(trace.prompt)
    if node not in nodes:
        raise Refusal("This mark is not a token of the trace; choose a token.")
    if node < trunk:
        raise Refusal("This token is part of the prompt: write another prompt and press Run.")
    path, above = [], nodes[node][0]
    while above >= trunk:
        path.append(above)
        above = nodes[above][0]
    return path[::-1]


def forced_tokens(trace: Trace, before: list[int], target, request: Branch) -> list[int]:
    """The tokens to force: `token`, or the typed `text` tokenized as a continuation of the text before it."""
    if request.token is not None:
        return [request.token]
    nodes = trace.nodes()
    return target.encode_after([*trace.prompt, *(nodes[n][1] for n in before)], typed_text(request))


def branch_begin(trace: Trace, before: list[int], tokens: list[int]) -> dict:
    """The given tokens of a branch: the text before, then `tokens`. Tokens forced before stay marked."""
    nodes, parent = trace.nodes(), beginnings.of(trace)
    forced = [place for place in parent["forced"] if place < len(before)] if parent else []
    begin = {
        "tokens": [*(nodes[n][1] for n in before), *tokens],
        "forced": [*forced, *range(len(before), len(before) + len(tokens))],
    }
    if len(begin["tokens"]) > MAX_NEW_TOKENS:
        raise Refusal(f"A lane writes at most {MAX_NEW_TOKENS} tokens: type less, or branch earlier.")
    return begin


def with_fixed_word(trace: Trace, request: Branch, target, limit: int) -> str:
    """The parameter fixed_words with one more word on the canvas. Raises Refusal with one sentence."""
    from decoders.diffusion.fixed_words import placed, with_word

    if "fixed_words" not in trace.parameters:
        raise Refusal(f"{trace.title} takes no fixed words; branch from a token that is output.")
    parent = beginnings.of(trace)
    start = len(trace.prompt) + (len(parent["tokens"]) if parent else 0)
    stop = len(trace.prompt) + limit
    if not start <= request.position < stop:
        raise Refusal("This position is not on the canvas: click one of its cells.")
    if request.token is not None:
        try:
            word = trace.vocabulary[request.token].decode()
        except (KeyError, UnicodeDecodeError) as error:
            raise Refusal("This token is not a whole character; type a word to put here.") from error
    else:
        word = typed_text(request)
    exactly = request.token is not None
    words = with_word(trace.parameters["fixed_words"], request.position - start + 1, word, exactly)
    placed(words, start, stop, lambda text: target.encode_after(trace.prompt, text))
    return words


def typed_text(request: Branch) -> str:
    """The text that a person typed. Raises Refusal with one sentence if it is empty or too long."""
    if not request.text:
        raise Refusal("Type the text to put here.")
    if len(request.text) > MAX_TYPED:
        raise Refusal(
            f"The text has {len(request.text):,} characters; at most {MAX_TYPED:,} are allowed. Shorten it."
        )
    return request.text


def setup(trace: Trace, parameters: dict, begin: dict | None) -> dict:
    """The lane as runs and saved setups describe it; parameters that have their default are left out."""
    from decoders.registry import get

    defaults = {p.name: p.default for p in get(trace.strategy).parameters}
    chosen = {name: value for name, value in parameters.items() if value != defaults.get(name)}
    made = {"strategy": trace.strategy, "parameters": chosen, "seed": trace.seed}
    return made | ({"begin": begin} if begin else {})
