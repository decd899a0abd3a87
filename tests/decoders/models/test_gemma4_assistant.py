"""The assistant of Gemma 4 at a small random size. The reference is transformers' own assistant, fed as its
generator of candidates does, with what the target's forward itself returns. transformers 5.23 asks whether an
assistant has layers with keys and values of their own, and builds none; the test answers for it.
"""

import json

import pytest
import torch
import transformers as T
from safetensors.torch import load_file, save_file

from decoders.heads import take_taps
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.models.model_heads import add_heads
from decoders.refusal import Refusal
from tests.helpers import tiny_models

pytestmark = pytest.mark.skipif(
    not hasattr(T, "Gemma4AssistantForCausalLM"), reason="this transformers has no assistants of Gemma 4"
)
D, V = 32, 259
KINDS = ["sliding_attention", "full_attention"]


def text_config(width: int, layers: list[str], own_inputs: int = 0, **more):
    sizes = dict(num_attention_heads=4, num_key_value_heads=2, head_dim=8, global_head_dim=16)
    sizes |= dict(sliding_window=6, max_position_embeddings=256, intermediate_size=48)
    ends = dict(bos_token_id=None, eos_token_id=256, pad_token_id=None)
    return T.Gemma4TextConfig(
        vocab_size=V, hidden_size=width, num_hidden_layers=len(layers), layer_types=layers,
        vocab_size_per_layer_input=V if own_inputs else 0, hidden_size_per_layer_input=own_inputs,
        initializer_range=0.2, **sizes, **ends, **more,
    )  # fmt: skip


def written(folder, ordered: bool = False, sharing: int = 2):
    """(the folder of a target whose upper layers share keys and values, its assistant's, the assistant)."""
    torch.manual_seed(3)
    target = T.Gemma4ForCausalLM(text_config(D, KINDS * 2, own_inputs=4, num_kv_shared_layers=sharing)).eval()
    target.save_pretrained(folder / "target")
    tiny_models.tokenizer().save_pretrained(folder / "target")
    centroids = dict(use_ordered_embeddings=True, num_centroids=7, centroid_intermediate_top_k=3)
    config = T.Gemma4AssistantConfig(
        text_config=text_config(16, KINDS), backbone_hidden_size=D, **(centroids if ordered else {})
    )
    with pytest.MonkeyPatch.context() as patched:
        shared = property(lambda self: ["reuse"] * self.num_hidden_layers)
        patched.setattr(T.Gemma4TextConfig, "kv_sharing_modes", shared, raising=False)
        assistant = T.Gemma4AssistantForCausalLM(config).eval()
    for parameter_name, parameter in assistant.named_parameters():
        if "norm" in parameter_name:
            torch.nn.init.normal_(parameter, 1.0, 0.2)
    for layer in assistant.model.layers:
        layer.layer_scalar.fill_(0.7)
    if ordered:
        assistant.masked_embedding.token_ordering.copy_(torch.randperm(V))
    assistant.save_pretrained(folder / "assistant")
    return str(folder / "target"), str(folder / "assistant"), assistant


def loaded(folder, **more):
    target, assistant, network = written(folder, **more)
    models = {"target": load(target, dtype="float32")}
    add_heads(models, [assistant])
    return models, network


@pytest.mark.parametrize(("ordered", "sharing"), [(False, 2), (True, 2), (False, 0)])
def test_it_guesses_as_transformers_does(tmp_path, ordered, sharing):
    models, network = loaded(tmp_path, ordered=ordered, sharing=sharing)
    target, module = models["target"], models["target"].heads["eagle"]
    assert module.kind == "gemma4_assistant" and module.sources == {
        KINDS[0]: 2 - sharing,
        KINDS[1]: 3 - sharing,
    }
    tokens = torch.randint(0, 250, (1, 12), generator=torch.Generator().manual_seed(5))  # two windows
    read, root = tokens[:, :-3], tokens[:, -3:-2]
    with torch.no_grad():
        cache = T.DynamicCache()
        out = target.model(
            read, output_hidden_states=True, return_shared_kv_states=True, past_key_values=cache
        )
        shared = out.shared_kv_states  # 5.23 returns none where no layers share, as in the larger models
        shared = shared or {
            kind: (cache.layers[at].keys, cache.layers[at].values) for kind, at in module.sources.items()
        }
        state, token, wanted = out.hidden_states[-1][:, -1:], root, []
        for following in (tokens[:, -2:-1], tokens[:, -1:], None):
            said = network(
                inputs_embeds=torch.cat([target.model.get_input_embeddings()(token), state], -1),
                position_ids=torch.tensor([[read.shape[1]]]),
                shared_kv_states=shared,
            )
            wanted.append(said.logits[0, 0])
            state, token = said.last_hidden_state, following
        taps = take_taps(target.model, read, module.reads)
        memory = module.memory()
        known = [tokens[0, 1 : read.shape[1]], {k: s[0] for k, s in taps.states.items()}]
        module.begin(memory, taps.hidden[0, :4], known[0][:4], {k: s[:4] for k, s in known[1].items()})
        rest = torch.cat([known[0][4:], root[0]])
        found = module.begin(memory, taps.hidden[0, 4:], rest, {k: s[4:] for k, s in known[1].items()})
        if (
            ordered
        ):  # tokens outside the best groups get the lowest number, and in transformers 1 less than these
            kept = found > torch.finfo(found.dtype).min
            assert kept.sum() == 3 * V // 7
            torch.testing.assert_close(found[kept], wanted[0][kept], atol=1e-4, rtol=1e-4)
            assert found.argmax() == wanted[0].argmax()
            return
        torch.testing.assert_close(found, wanted[0], atol=1e-4, rtol=1e-4)
        below = module.expand(memory, [0, 0], torch.stack([tokens[0, -2], root[0, 0]]))
        torch.testing.assert_close(below[0], wanted[1], atol=1e-4, rtol=1e-4)
        deeper = module.expand(memory, [1], tokens[0, -1:])
        torch.testing.assert_close(deeper[0], wanted[2], atol=1e-4, rtol=1e-4)
        along = module.along(take_taps(target.model, tokens, module.reads), 2)
        torch.testing.assert_close(along[0][0, read.shape[1] - 1], wanted[0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(along[1][0, read.shape[1] - 1], wanted[1], atol=1e-4, rtol=1e-4)


def test_its_first_drafts_are_those_of_transformers_own_generator(tmp_path):
    """Of the first round: later its keys and values include that of a rejected token."""
    from transformers.generation.candidate_generator import SinglePositionMultiTokenCandidateGenerator

    models, network = loaded(tmp_path)
    model, prompt = models["target"].model, torch.tensor([[5, 6, 7, 8, 9, 10, 11]])
    network.generation_config.num_assistant_tokens = 3
    config = T.GenerationConfig(max_length=40, do_sample=False)
    generator = SinglePositionMultiTokenCandidateGenerator(
        assistant_model=network,
        target_model_input_embeddings=model.get_input_embeddings(),
        generation_config=config,
        input_ids=prompt,
        model_kwargs={},
    )
    with torch.no_grad():
        out = model(prompt, output_hidden_states=True, return_shared_kv_states=True)
    text = torch.cat([prompt, out.logits[:, -1:].argmax(-1)], 1)
    last = prompt.shape[1] - 1  # older ones read the state at this place of the prompt
    found, _ = generator.get_candidates(text, {}, out, is_first_iteration=False, n_last_matches=last)
    parameters = {"tree": "chain", "depth": 3}
    lane = Lane("eagle", prompt[0].tolist(), models, parameters, limits=Limits(12))
    lane.advance()  # decodes the root
    step = lane.advance()
    drafted = [e.token for e in step.events if type(e).__name__ == "Propose" and e.source == "draft"]
    assert drafted == found[0, text.shape[1] :].tolist()
    lane.close()


@pytest.mark.parametrize("tree", [{"tree": "chain", "depth": 2}, {}])
def test_the_text_is_greedys(tmp_path, tree):
    models, _ = loaded(tmp_path)
    trace = Lane("eagle", [5, 6, 7, 8, 9, 10, 11, 12], models, tree, limits=Limits(16)).run()
    plain = Lane("greedy", [5, 6, 7, 8, 9, 10, 11, 12], models, limits=Limits(16)).run()
    assert trace.output() == plain.output() and trace.costs.totals()["proposed"] > 0


def test_another_target_is_refused(tmp_path, tiny_model):
    _, assistant, _ = written(tmp_path)
    models = {"target": tiny_model("llama")}
    with pytest.raises(Refusal, match="reads that model's keys and values; the target is a llama"):
        add_heads(models, [assistant])


def test_a_missing_tensor_and_another_size_are_refused(tmp_path):
    target, assistant, _ = written(tmp_path)
    path = tmp_path / "assistant" / "model.safetensors"
    state = load_file(path)
    save_file({k: v for k, v in state.items() if k != "post_projection.weight"}, path, {"format": "pt"})
    models = {"target": load(target, dtype="float32")}
    with pytest.raises(Refusal, match="lack the tensor 'post_projection.weight'"):
        add_heads(models, [assistant])
    config = json.loads((tmp_path / "assistant" / "config.json").read_text("utf-8"))
    config["backbone_hidden_size"] = 2 * D
    (tmp_path / "assistant" / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(Refusal, match="width of the target is 64, that of the target is 32"):
        add_heads(models, [assistant])
