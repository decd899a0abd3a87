"""A served model without a server: its client asks a model of this process."""

import torch

from decoders.models.loaded_model import LoadedModel
from decoders.models.served_model import ServedModel


class ClientHere:
    """Like `CompletionsClient`: whole vocabularies, and a stream whose tokens are drawn by the seed."""

    base, top = "this process", None
    scores = continues = True
    at_once = 1

    def __init__(self, model: LoadedModel):
        self.model, self.vocabulary = model, model.engine.vocabulary

    def next_tokens(self, texts):
        return [dict(enumerate(self._row(text).tolist())) for text in texts]

    def along(self, text, lengths):
        return None

    def stream(self, text, max_tokens, top, settings):
        luck, text = torch.Generator().manual_seed(settings["seed"]), list(text)
        for _ in range(max_tokens):
            row, heat = self._row(text), settings["temperature"]
            token = (
                row.argmax() if heat == 0 else torch.multinomial((row / heat).softmax(-1), 1, generator=luck)
            )
            text.append(int(token))
            best = row.topk(top).indices.tolist()
            yield [(text[-1], {t: row[t].item() for t in {*best, text[-1]}})]
            if text[-1] in self.model.eos:
                return

    @torch.inference_mode()
    def _row(self, text) -> torch.Tensor:
        model = self.model.model
        logits = model(torch.tensor([text], device=model.device)).logits[0, -1]
        return logits.cpu().double().log_softmax(-1)


class ServedHere(ServedModel):
    """The model as a server would hold it, with weights for comparison."""

    def __init__(self, held: LoadedModel):
        super().__init__(held.name, ClientHere(held), held.context, held.tokenizer)
        self.model = held.model

    @property
    def eos(self) -> frozenset[int]:
        return self.client.model.eos
