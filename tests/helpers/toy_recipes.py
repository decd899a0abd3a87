"""Every recipe at toy scale: what it builds on, and its constants, or the fields of its row. Plain data."""

from explorer.training.rows.story_models import Stage

TOY = dict(hidden_size=16, heads=2, intermediate_size=32)
SMALL = dict(hidden_size=16, intermediate_size=32, num_attention_heads=2, num_key_value_heads=2)
LAYERED = SMALL | dict(num_hidden_layers=4)
STAGES = (
    Stage("llama-tiny-8", 10),
    Stage("llama-tiny-12", 8, layers=3),
    Stage("llama-tiny-mixed", 20, tasks=0.375, exits=(1, 2)),
)
STAGED = dict(widths=(16, 16, 16), heads=(2, 2, 2), layers=(1, 1, 1))
# name -> recipes whose models it begins with, its constants at toy scale
TOYS = {
    "llama-tiny-yoco": ((), dict(shape=LAYERED)),
    "llama-tiny-sambay": ((), dict(shape=LAYERED | dict(num_hidden_layers=8))),
    "llama-tiny-flowformer": ((), dict(shape=LAYERED)),
    "llama-tiny-chunked-memory": ((), dict(shape=LAYERED | dict(num_hidden_layers=2))),
    "llama-tiny-dna": ((), dict(shape=LAYERED | dict(pool=4))),
    "tiny-megabyte": ((), dict(shape=LAYERED | dict(global_width=16, global_layers=1, global_heads=2))),
    "tiny-mblm": ((), dict(shape=SMALL | STAGED)),
    "llama-tiny": ((), dict(start=TOY | dict(layers=2), stages=STAGES)),
    "llama-tiny-draft": ((), dict(start=TOY | dict(layers=1))),
    "llama-tiny-draft-distilled": (("llama-tiny", "llama-tiny-draft"), {}),
    "llama-tiny-fastdraft-pretrained": ((), dict(start=TOY | dict(layers=1))),
    "llama-tiny-fastdraft-continued": (("llama-tiny-fastdraft-pretrained",), {}),
    "llama-tiny-fastdraft": (("llama-tiny-fastdraft-continued", "llama-tiny"), dict(OWN_SHARE=0.1)),
    "llama-tiny-sorted": (("llama-tiny-draft-distilled",), dict(EXITS=(1, 2), OWN=0.001)),
    "llama-tiny-moe": (
        ("llama-tiny",),
        dict(SHAPE=dict(intermediate_size=8, num_local_experts=4, num_experts_per_tok=2), LAYERS=2),
    ),
    "llama-tiny-diffusion": (("llama-tiny",), {}),
    "llama-tiny-set-block": (("llama-tiny",), {}),
    "llama-tiny-deer": (("llama-tiny-diffusion",), dict(BATCH=2, HELD_OUT=2)),
    "llama-tiny-filter": (
        ("llama-tiny-diffusion",),
        dict(BLOCKS=1, STORIES=2, PROBLEMS=2, TOGETHER=2, HELD_OUT=2, BATCH=8),
    ),
    "llama-tiny-wedlm": (("llama-tiny-set-block",), {}),
    "llama-tiny-heads": (("llama-tiny",), dict(heads={"medusa": {}, "eagle": {}, "kangaroo": {"exit": 1}})),
    "llama-tiny-m2r2": (("llama-tiny-heads",), dict(heads={"m2r2": {"exit": 1, "rank": 64}})),
    "llama-tiny-feature-drafters": (("llama-tiny-heads",), {}),
    "llama-tiny-block-drafters": (("llama-tiny-heads",), {}),
    "llama-tiny-recurrent-heads": (("llama-tiny-heads",), {}),
    "llama-tiny-adaeagle": (("llama-tiny-heads",), dict(TEXT=600, OWN_BATCH=4, BATCH=2, HELD_OUT=2)),
    "llama-tiny-lookahead-heads": (("llama-tiny-heads",), dict(batch=4, length=64, validation_rows=4)),
    "llama-tiny-lud": (("llama-tiny",), dict(BATCH=4, LENGTH=64, HELD_OUT=1)),
    "llama-tiny-reward": (("llama-tiny",), dict(CHUNK=6, SAMPLED=1, BATCH=8)),
    "llama-tiny-acceptance": (("llama-tiny-draft-distilled",), dict(BATCH=2)),
    "llama-tiny-aligned": (("llama-tiny",), dict(TEXTS=8, WRITERS=4, WRITTEN=8, BATCH=2, HELD_OUT=2)),
    "llama-tiny-flaws": (("llama-tiny",), dict(batch=2, held_out=1)),
    "llama-tiny-forms": (("llama-tiny",), dict(held_out=1)),
    "llama-tiny-summaries": (("llama-tiny",), dict(BATCH=2, HELD_OUT=1, SHEETS=80, STARTS=1)),
    "llama-tiny-planner": (("llama-tiny-summaries",), dict(SHEETS=20, BATCH=4)),
    "llama-tiny-streams": (("llama-tiny",), dict(RECORDS=8, HELD_OUT=4, BATCH=2)),
    "llama-tiny-autodeco": (("llama-tiny-reward",), dict(ANSWERS=9, ROWS=4, BATCH=256, HELD_OUT=1)),
    "llama-tiny-outlook": (("llama-tiny-draft-distilled",), dict(TEXTS=16, WRITERS=8, WRITTEN=8, BATCH=64)),
    "llama-tiny-ranker": (("llama-tiny",), dict(DOCUMENTS=8, MIN_PIECE=2, WRITTEN=8, BATCH=2, HELD_OUT=2)),
    "llama-tiny-judge": (("llama-tiny-draft-distilled",), dict(PROBLEMS=8, CHUNK=4, BATCH=64)),
    "llama-tiny-leank": (("llama-tiny",), dict(BATCH=2, VALIDATION_ROWS=1)),
    "llama-tiny-lens": (("llama-tiny",), dict(BATCH=2)),
    "llama-tiny-verilog": (("llama-tiny",), dict(batch=2, held_out=1)),
    "llama-tiny-verilog-heads": (("llama-tiny-verilog",), dict(BATCH=4, ROW=64, HELD_OUT=4, DEPTH=2, RANK=4)),
    "llama-tiny-flow": (("llama-tiny-diffusion",), dict(BATCH=24, LAYERS=1)),
    "llama-tiny-seq2seq": (
        ("llama-tiny",),
        dict(SHAPE=dict(num_layers=1, num_decoder_layers=1), BATCH=16, MEASURED=2, VALIDATION=2),
    ),
    "tiny-bytenet": ((), dict(SHAPE=dict(width=8, dilations=(1, 2), sets=1), HELD_OUT=2)),
    "tiny-pervasive": ((), dict(SHAPE=dict(width=8, layers=1), HELD_OUT=2)),
    "tiny-recursive-bytes": ((), dict(SHAPE=dict(length=64, channels=8, vector=16), HELD_OUT=2)),
    "tiny-codet5": (
        (),
        dict(
            SHAPE=dict(d_model=8, d_kv=4, num_heads=2, d_ff=8, num_layers=1, num_decoder_layers=1), HELD_OUT=1
        ),
    ),
    "tiny-retro": (("llama-tiny-draft",), dict(NOTES=4, STORE_STORIES=64, HELD_OUT=2, NOTE_ROWS=24)),
}
