"""The help: all keys and words are there, and scripts read of the token only where one is asked for."""

from explorer.export.help_text import KEYS, WORDS, help_html


def test_keys_and_words_are_there_and_a_saved_page_speaks_of_no_app():
    saved, served = help_html(served=False), help_html(True, token=True, mcp=True)
    assert all(f"<dt>{word}</dt>" in saved for word, _ in WORDS) and saved.count("<kbd>") > len(KEYS)
    assert "gradio_client" not in saved and "TOKEN" not in saved
    assert '"Authorization": "Bearer TOKEN"' in served and "gradio_api/mcp/?token=TOKEN" in served
    assert "TOKEN" not in help_html(True, mcp=True) and "mcp" not in help_html(True)
