"""The theme of Gradio's components: the colours of our palette, in light and dark, and our sizes.

The palette's surfaces are CSS variables of the page (`palette.css`) that change with its theme, so each of
Gradio's own variables has the same value in light and dark mode.
"""

import gradio as gr
from gradio.themes import sizes

SURFACES = {
    "var(--bg)": "body_background_fill background_fill_primary block_background_fill input_background_fill "
    "input_background_fill_focus input_background_fill_hover button_secondary_background_fill "
    "checkbox_background_color checkbox_background_color_focus checkbox_background_color_hover "
    "checkbox_label_background_fill table_odd_background_fill block_label_background_fill "
    "block_title_background_fill button_cancel_background_fill",
    "var(--panel)": "background_fill_secondary panel_background_fill button_secondary_background_fill_hover "
    "checkbox_label_background_fill_hover table_even_background_fill code_background_fill "
    "button_cancel_background_fill_hover",
    "var(--grid)": "color_accent_soft table_row_focus checkbox_label_background_fill_selected "
    "stat_background_fill",
    "var(--line)": "border_color_primary block_border_color input_border_color input_border_color_hover "
    "button_secondary_border_color button_secondary_border_color_hover checkbox_border_color "
    "checkbox_border_color_hover checkbox_label_border_color checkbox_label_border_color_hover "
    "table_border_color panel_border_color block_label_border_color",
    "var(--text)": "body_text_color color_accent border_color_accent block_title_text_color "
    "block_label_text_color button_secondary_text_color button_secondary_text_color_hover "
    "button_primary_background_fill button_primary_border_color button_primary_border_color_hover "
    "checkbox_background_color_selected checkbox_border_color_selected checkbox_label_text_color "
    "checkbox_label_text_color_selected checkbox_label_border_color_selected table_text_color slider_color "
    "loader_color link_text_color link_text_color_active link_text_color_hover link_text_color_visited "
    "button_cancel_text_color button_cancel_text_color_hover accordion_text_color",
    "var(--soft)": "body_text_color_subdued block_info_text_color input_placeholder_color "
    "button_primary_background_fill_hover",
    "var(--on_fill)": "button_primary_text_color button_primary_text_color_hover",
    "var(--focus)": "input_border_color_focus checkbox_border_color_focus",
    "1px": "button_border_width input_border_width",
    "none": "block_shadow input_shadow input_shadow_focus button_primary_shadow button_secondary_shadow "
    "checkbox_shadow checkbox_label_shadow shadow_drop",
}


def theme() -> gr.themes.Base:
    """The theme of the app."""
    made = gr.themes.Base(
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
        text_size=sizes.text_sm,
        spacing_size=sizes.spacing_sm,
        radius_size=sizes.radius_sm,
    )
    for value, names in SURFACES.items():
        for name in names.split():
            for given in (name, f"{name}_dark"):
                if hasattr(made, given):
                    setattr(made, given, value)
    made.checkbox_check_dark = made.checkbox_check.replace("white", "black")  # on a fill of the text's colour
    return made
