"""Moves items that want the same place apart."""


def spread(wanted: list[float], taken: list[float], apart: float = 1.0) -> list[float]:
    """Positions near those `wanted`, in this order, at least `apart` from each other and from `taken`."""
    places: list[float] = []
    for y in wanted:
        y = max(y, places[-1] + apart) if places else y
        places.append(y)
    shift = sum(p - w for p, w in zip(places, wanted, strict=True)) / max(1, len(places))
    shift = min(shift, places[0]) if places else 0.0
    places = [round(p - shift, 4) for p in places]
    if taken:
        below = max(taken) + apart
        for i, place in enumerate(places):
            if any(abs(place - other) < apart for other in (*taken, *places[:i])):
                places[i] = below = max(below, *(p + apart for p in places[:i]), below)
    return places
