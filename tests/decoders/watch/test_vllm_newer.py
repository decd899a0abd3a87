"""The recorder of vLLM's newer model runner on a stand-in with its names, shapes and calls (vLLM's CPU build
cannot run that runner).
"""

from types import SimpleNamespace

import numpy as np
import torch

from decoders.trace.events import Distribution, Propose, Verdict
from decoders.watch.vllm.newer_runner import NewerRunnerRecorder
from decoders.watch.vllm.requests import Requests
from decoders.watch.vllm.spool import SpoolReader
from tests.helpers.vllm_stand_in import ENGINE, params

WORDS, DRAFTED = 30, 2


class Sampler:
    """Its own sampler: draws greedily from what it has processed."""

    def __init__(self):
        self.sampling_states = SimpleNamespace(temperature=SimpleNamespace(gpu=torch.ones(4)))

    def sample(self, logits, *_, **__):
        return logits.argmax(-1), logits


class RejectionSampler:
    """Greedy tests; `_verify` takes and gives what vLLM's does."""

    def _verify(self, logits, draft_logits, draft_sampled, pos, ends, *rest):
        processed = logits * 2.0
        best, sampled, counts = processed.argmax(-1), [], []
        for first, stop in zip(ends.tolist(), ends.tolist()[1:], strict=False):
            row = []
            for at in range(first, stop):
                row.append(int(best[at]))
                if at + 1 == stop or row[-1] != int(draft_sampled[at + 1]):
                    break
            counts.append(len(row))
            sampled.append(row + [0] * (DRAFTED + 1 - len(row)))
        return processed, torch.tensor(sampled), torch.tensor(counts)


class Runner:
    """Two requests; the drafter guesses the target's token at every other place."""

    def __init__(self):
        torch.manual_seed(0)
        self.table = torch.randn(WORDS, WORDS)
        self.sampler, self.rejection_sampler = Sampler(), RejectionSampler()
        self.structured_outputs_worker = None
        self.texts = {"a": [1], "b": [2]}
        self.drafts = {"a": [], "b": []}

    def execute_model(self, scheduled, intermediate=None):
        """The forward: nothing to do for a table."""

    def sample(self, hidden, batch, grammar):
        logits = self.table[hidden]
        if not batch.num_draft_tokens:
            sampled, _ = self.sampler.sample(logits)
            output, counts = sampled[:, None], torch.ones(len(sampled), dtype=torch.long)
        else:
            draft_logits = torch.randn(4, DRAFTED, WORDS)
            verified = self.rejection_sampler._verify(
                logits,
                draft_logits,
                hidden,
                None,
                torch.from_numpy(batch.cu_num_logits_np),
                None,
                None,
                None,
                None,
                None,
                hidden,
            )
            _, output, counts = verified
        return SimpleNamespace(sampled_token_ids=output, num_sampled=counts), None, None

    def step(self, new=()):
        counts = [len(draft) for draft in self.drafts.values()]
        tokens = {name: count + 1 for name, count in zip(self.texts, counts, strict=True)}
        self.execute_model(
            SimpleNamespace(
                finished_req_ids=set(),
                preempted_req_ids=None,
                num_scheduled_tokens=tokens,
                scheduled_new_reqs=[
                    SimpleNamespace(
                        req_id=name, prompt_token_ids=self.texts[name][:], sampling_params=params()
                    )
                    for name in new
                ],
            )
        )
        read = [token for name, text in self.texts.items() for token in (text[-1], *self.drafts[name])]
        batch = SimpleNamespace(
            req_ids=list(self.texts),
            num_reqs=2,
            num_draft_tokens=sum(counts),
            cu_num_logits_np=np.concatenate([[0], np.cumsum(np.array(counts) + 1)]),
            num_scheduled_tokens=np.array(list(tokens.values())),
            expanded_idx_mapping=torch.repeat_interleave(torch.arange(2), torch.tensor(counts) + 1),
            expanded_local_pos=torch.cat([torch.arange(count + 1) for count in counts]),
        )
        output = self.sample(torch.tensor(read), batch, None)[0]
        for number, (name, text) in enumerate(self.texts.items()):
            text += output.sampled_token_ids[number, : int(output.num_sampled[number])].tolist()
            right = int(self.table[text[-1]].argmax())
            self.drafts[name] = [right, (right + len(text)) % WORDS]


def test_its_rounds_become_traces(tmp_path):
    runner, alone = Runner(), Runner()
    own = NewerRunnerRecorder(runner, tmp_path, 20, ENGINE)
    for at in range(6):
        runner.step(("a", "b") if at == 0 else ())
        alone.step()
    own.close()
    assert runner.texts == alone.texts and "sample" not in vars(runner)
    requests = Requests(lambda _: lambda token: f" w{token}".encode())
    requests.read(SpoolReader(tmp_path).records())
    traces = [one.trace for one in requests.all]
    assert [trace.prompt + trace.output() for trace in traces] == list(runner.texts.values())
    verdicts = [v for trace in traces for step in trace.steps for v in step.of(Verdict)]
    assert {v.status for v in verdicts} >= {"accepted", "rejected", "resampled"}
    proposed = [e for step in traces[0].steps for e in step.of(Propose) if e.source == "draft"]
    assert len(proposed) == 5 * DRAFTED and all(event.logprob is not None for event in proposed)
    known = traces[0].nodes()
    for step in traces[0].steps:
        for event in step.of(Distribution):
            if event.view in ("target", "processed"):
                scale = 2.0 if event.view == "processed" else 1.0
                expected = (runner.table[known[event.node][1]] * scale).log_softmax(-1).topk(20)
                assert [token for token, _ in event.top] == expected.indices.tolist()
                torch.testing.assert_close(
                    torch.tensor([logprob for _, logprob in event.top]), expected.values, atol=1e-5, rtol=1e-5
                )
