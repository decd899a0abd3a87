"""llama-tiny-draft: the draft for llama-tiny. Two Llama layers of width 128, 0.9 M parameters, the same
texts.

python assets/recipes/llama_tiny_draft.py --corpus FOLDER
"""

from common import llama, run

if __name__ == "__main__":
    model = llama(hidden_size=128, layers=2, heads=4, intermediate_size=352)
    run("llama-tiny-draft", model, million_tokens=12, batch=16, description=__doc__)
