"""What the loopback provider answers: about 0.8 kB of JSON that follows from the request, or a paced stream."""

from __future__ import annotations

import json

from asking import words

from lockstep.testing import Answer, Request

EVENTS = 7  # of a streamed answer, so that six gaps lie between them
GAP = 0.1


def answer(request: Request) -> Answer:
    """The provider's script."""
    if request.json.get("stream"):
        deltas = [{"index": n, "delta": {"content": words(12, n)}} for n in range(EVENTS - 1)]
        events = [json.dumps({"object": "chat.completion.chunk", "choices": [delta]}) for delta in deltas]
        chunks = tuple(f"data: {event}\n\n".encode() for event in (*events, "[DONE]"))
        return Answer(body=chunks, gap=GAP, headers=(("content-type", "text/event-stream"),))
    return Answer(words(480, request.prompt))
