"""LeanK's alphas turning into a mask, as a small SVG for the model's card: layers by heads and channels."""

import torch

from explorer.training.loss_picture import colours

CELL, ROW, GAP = 3, 8, 4  # width of a channel, height of a layer, space between two heads
LEFT, TOP, LEGEND = 60, 44, 74  # room for layers' names, title, and the share kept by frequency
SHADES = 8


def by_frequency(width: int) -> list[int]:
    """A head's channels from the highest rotary frequency to the lowest: j and j + D / 2 turn together."""
    return [channel for j in range(width // 2) for channel in (j, j + width // 2)]


def panel(values: torch.Tensor, y0: int) -> list[str]:
    """One path for each shade of values [L, Hkv, D] in 0 to 1, channels in order of frequency."""
    layers, heads, width = values.shape
    shades = (values[..., by_frequency(width)] * SHADES).round().int()
    paths = []
    for shade in range(1, SHADES + 1):
        moves = [
            f"M{LEFT + head * (width * CELL + GAP) + channel * CELL} {y0 + layer * ROW}h{CELL}"
            for layer, head, channel in (shades == shade).nonzero().tolist()
        ]
        if moves:
            paths.append(
                f'<path class="held cell" stroke-opacity="{shade / SHADES:g}" d="{"".join(moves)}"/>'
            )
    return paths


def mask_picture(alphas: torch.Tensor, kept: torch.Tensor, title: str) -> str:
    """The SVG of alphas [L, Hkv, D] after stage 1 above the mask [L, Hkv, D], and the share of channels kept
    at each rotary frequency. title: plain ASCII words without markup.
    """
    alphas, kept = alphas.detach().cpu(), kept.detach().cpu()
    layers, heads, width = kept.shape
    wide, high = heads * (width * CELL + GAP), layers * ROW
    second = TOP + high + 34
    third = second + high + 34
    full, bottom = LEFT + wide + 16, third + LEGEND
    shares = kept.float().mean((0, 1))[by_frequency(width)].view(-1, 2).mean(1).tolist()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {bottom}" role="img"'
        f' aria-label="{title}: alphas and mask">',
        "<style>text{font:11px system-ui,sans-serif}.strong{font-weight:600}"
        f".cell{{stroke-width:{ROW - 1};fill:none}}.bar{{stroke-width:8;fill:none}}"
        f"{colours('light')}@media(prefers-color-scheme:dark){{{colours('dark')}}}</style>",
        f'<rect class="back" width="{full}" height="{bottom}" rx="6"/>',
        f'<text class="strong" x="{LEFT}" y="19">{title}: alphas, and the channels that are kept</text>',
        f'<text x="{LEFT}" y="{TOP - 8}">alpha after stage 1, by head; in each, rotary frequency falls from '
        "left to right</text>",
        *panel(alphas, TOP + ROW // 2),
        f'<text x="{LEFT}" y="{second - 8}">mask: {kept.float().mean():.0%} of the channels</text>',
        *panel(kept.float(), second + ROW // 2),
        f'<text x="{LEFT}" y="{third - 8}">share kept, from the highest rotary frequency to the lowest'
        "</text>",
    ]
    for layer in (0, layers - 1):
        for top in (TOP, second):
            y = top + layer * ROW + ROW
            parts.append(f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">layer {layer + 1}</text>')
    for at, share in enumerate(shares):
        x = LEFT + (at + 0.5) * wide / len(shares)
        parts.append(f'<path class="held bar" d="M{x:.1f} {third + 50}v-{max(0.5, 50 * share):.1f}"/>')
        parts.append(f'<text x="{x:.1f}" y="{third + 64}" text-anchor="middle">{share:.0%}</text>')
    return "\n".join([*parts, "</svg>", ""])
