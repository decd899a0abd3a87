"""An acceptance report in words: a summary, and a sentence that compares two drafters."""


def summary(report: dict) -> str:
    """The report as text."""
    lines = []
    for draft in report["drafts"]:
        lines.append(f"{draft['name']} for {report['target']}, {len(report['prompts'])} prompts")
        lines += [f"  {'shape of the draft':28} {draft['shape']}"] if draft["shape"] else []
        lines += [
            f"  {one['name']:28} {shown(one['value'])}" for one in draft["metrics"] if one["formula"]
        ] or ["  nothing was drafted"]
        total = sum(draft["causes"].values())
        lines += [f"  {count:5} of {total} rejections: {name}" for name, count in draft["causes"].items()]
    if sides := report["sides"]:
        lines.append(compared(sides))
    return "\n".join(lines)


def shown(value: float | int | list) -> str:
    """A metric as text."""
    if isinstance(value, list):
        return ", ".join(shown(one) for one in value)
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def compared(sides: dict) -> str:
    """Compares two drafters at the same positions, in one sentence."""
    if not sides["places"]:
        return "There is no position at which both drafters guess."
    a, b = sides["names"]
    error = "" if sides["error"] is None else f" ± {sides['error']:.3f} (standard error over prompts)"
    return (
        f"At the same {sides['places']:,} positions of the target's text, a single guess by {a} is accepted "
        f"in {sides['shares'][0]:.1%}, one by {b} in {sides['shares'][1]:.1%}: a difference of "
        f"{sides['difference']:+.3f}{error}."
    )
