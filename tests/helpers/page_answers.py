"""What an event of the page answers, for tests that call its function themselves."""

import asyncio


def pages(event, *inputs, most: int = 10**6) -> list[dict]:
    """What the generator answers, one update after the other; it is left after `most` of them."""

    async def all_of() -> list[dict]:
        found, answers = [], event(*inputs)
        async for update in answers:
            found.append(update)
            if len(found) >= most:
                await answers.aclose()
                break
        return found

    return asyncio.run(all_of())
