"""llama-tiny: the target. Twelve Llama layers of width 192, 6.1 M parameters, trained on simple stories: the
first ten million tokens with eight layers.

python assets/recipes/llama_tiny.py --corpus FOLDER
"""

from common import llama, run

if __name__ == "__main__":
    model = llama(hidden_size=192, layers=8, heads=6, intermediate_size=512)
    run("llama-tiny", model, million_tokens=10, batch=16, description=__doc__, deeper=(12, 8))
