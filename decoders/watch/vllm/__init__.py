"""`watch(llm)` for vLLM: what its samplers saw and decided, as one trace per request.

vLLM's worker process (plugin.py, runner.py, newer_runner.py) measures each step and writes the numbers into a
spool; another process (requests.py) makes traces of them. vLLM itself is imported in its own processes alone.
"""
