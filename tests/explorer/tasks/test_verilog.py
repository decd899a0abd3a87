"""Small Verilog modules: marks by hand, ports that fit their statements, and every kind of statement."""

import random
import re

from explorer.tasks.verilog import FRAGMENT, STATEMENTS, make_module, marked, unmarked


def test_marks_stand_behind_keywords_names_numbers_and_operators():
    line = "  if (clear) q_1 <= 0;\n  else q_1 <= ~d;\n"
    assert marked(line).replace(FRAGMENT, "·") == "  if· (clear·) q_1· <=· 0·;\n  else· q_1· <=· ~·d·;\n"


def test_modules_declare_what_they_use_and_marks_come_off_again():
    rng, kinds = random.Random(0), set()
    for _ in range(300):
        prompt, module = make_module(rng)
        assert unmarked(marked(module)) == module and module.endswith("endmodule\n")
        head, _, body = module.partition(");\n")
        ports = re.findall(r"(input|output)( reg)? (\w+)", head)
        declared = {name for _, _, name in ports}
        assert len(declared) == len(ports)
        used = set(re.findall(r"[a-z_]\w*", body)) - {
            *("assign", "always", "posedge", "if", "else", "endmodule")
        }
        assert used == declared
        written = set(re.findall(r"(\w+) (?:<=|=) ", body))
        assert written == {name for way, _, name in ports if way == "output"}
        assert set(re.findall(r"(\w+) <= ", body)) == {name for _, register, name in ports if register}
        assert prompt.startswith("// module ") and prompt.endswith("\n")
        kinds |= {re.sub(r"\w+", "w", part) for part in prompt.partition(": ")[2].strip().split("; ")}
    assert len(kinds) >= len({re.sub(r"[{}]|\w+", "w", says) for says, _, _ in STATEMENTS}) - 1
