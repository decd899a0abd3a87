"""Makes the lanes of a run from what a person asked for. Knows lanes and models, nothing of runs or pages."""

from collections.abc import Callable

from explorer.loading import Loader


def lane_maker(loader: Loader) -> Callable[[dict], list]:
    """A function from a checked request to its lanes; it waits for the models. See `Runs`."""

    def make(request: dict) -> list:
        models = loader.wait()
        from decoders.lane import Lane, Limits  # torch is there by now

        prompt = models["target"].encode(request["prompt"])
        limits = Limits(max_new_tokens=request["max_new_tokens"])
        lanes: list = []
        for lane in request["lanes"]:
            try:
                wanted = (lane["strategy"], prompt, models, lane["parameters"], lane["seed"], limits)
                lanes.append(Lane(*wanted, begin=lane.get("begin")))
            except ValueError as error:
                for made in lanes:
                    made.close()
                where = f"Lane {len(lanes) + 1}: " if len(request["lanes"]) > 1 else ""
                raise ValueError(f"{where}{error}") from error
        return lanes

    return make
