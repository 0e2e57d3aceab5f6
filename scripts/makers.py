"""Keep long lenses running while a class explores, for the load test."""

import asyncio
import random
from dataclasses import dataclass, field

import requests
from websockets.exceptions import WebSocketException

from scripts.visitor import arrive

_SHOWN = "download_button"  # with which a lens's result ends on the page


@dataclass
class Making:
    """Runs that people who run a lens all the time finished, and their failures.

    Attributes:
        finished: runs that went to their end.
        failures: what went wrong.
        over: whether they may stop; `asyncio.wait_for` of Python 3.11 can swallow a cancellation.
    """

    finished: int = 0
    failures: list[str] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)


async def keep_making(address: str, query: dict[str, str], seed: int, made: Making) -> None:
    """Open a lens and run it for one layer after the other, until it is over.

    Args:
        address: of the server.
        query: the link's, with the lens.
        seed: tells people apart: each begins with another layer.
        made: what came of it is added here.
    """
    order = random.Random(seed)  # noqa: S311 - a person's whims
    while not made.over.is_set():
        try:
            async with arrive(address, query) as tab:
                await tab.run()
                known = len(tab.problems)
                layers = list(tab.options.get("Layer", ()))
                order.shuffle(layers)
                for layer in layers:  # each once: a second time it would be in the session's cache
                    if made.over.is_set():
                        return
                    tab.sent.clear()
                    await tab.choose("Layer", layer)
                    made.finished += _SHOWN in tab.sent
                    made.failures += [f"making: {text}" for text in tab.problems[known:]]
                    known = len(tab.problems)
        except (OSError, LookupError, requests.RequestException, WebSocketException) as error:
            made.failures.append(f"making: {type(error).__name__}: {error}"[:200])
            await asyncio.sleep(1)
