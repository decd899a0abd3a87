"""llama-tiny: the target, twelve Llama layers of width 192, 6.1 M parameters: stories first (eight layers,
then twelve), then stories and checkable tasks with early exits after layers 3, 6 and 9.

python assets/recipes/llama_tiny.py --corpus FOLDER
"""

from causal import finish, stage
from corpus import prepare
from training import arguments, deepened, exits_loss, llama

EXITS = (3, 6, 9)

if __name__ == "__main__":
    args = arguments(__doc__)
    texts = prepare(args.corpus, args.work)
    model = llama(hidden_size=192, layers=8, heads=6, intermediate_size=512)
    curve = stage(model, texts, args, "llama-tiny-8", 10)
    model = deepened(model, 12)
    curve = stage(model, texts, args, "llama-tiny-12", 8, curve=curve)
    loss = exits_loss(model, EXITS, weight=0.3)
    curve = stage(model, texts, args, "llama-tiny-mixed", 30, tasks=0.25, loss=loss, curve=curve)
    finish(model, texts, "llama-tiny", curve, exits=EXITS)
