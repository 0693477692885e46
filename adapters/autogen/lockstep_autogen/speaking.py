"""Where a team's participants are about to say something, before anybody hears it.

Those who were asked to speak at once are heard in the order in which what they say is published: by the manager, by the
others, and so by whoever speaks next. That order is part of what a replay has to do again. Answers of models come in
their recorded order (`lockstep.session.native.order`), but how long each agent then takes to say something is its own,
and one that asks nobody anything has nothing else that could put it in its place.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lockstep_autogen.cut import name_in

if TYPE_CHECKING:
    from lockstep_autogen.attaching import Root

_PATIENCE = 0.5  # seconds without anybody saying anything, after which one waits for no other


def hold(root: Root, team: Any, lane: str) -> None:
    """Has whoever the team's seams name as `speaks` called before anything that is said in this team is published."""
    runtime = team._runtime
    publish, topics = runtime.publish_message, (team._group_topic_type, team._output_topic_type)

    async def publish_message(message: Any, topic_id: Any, *args: Any, **options: Any) -> Any:
        speaks = root.seams.speaks
        if speaks is not None and topic_id.type in topics and (name := name_in(message)):
            await speaks(lane, name)
        return await publish(message, topic_id, *args, **options)

    runtime.publish_message = publish_message


class Order:
    """In what order something is said by those who speak at once."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names`: as in `layout.ORDER`, one by one."""
        self._left = deque(names)
        self._waits: dict[str, asyncio.Event] = {}

    async def turn(self, name: str) -> None:
        """Returns when everything before this has been said, or nothing has for a while."""
        while name in self._left and self._left[0] != name:
            bell = self._waits.setdefault(name, asyncio.Event())
            bell.clear()
            before = len(self._left)
            try:
                await asyncio.wait_for(bell.wait(), _PATIENCE)
            except TimeoutError:
                if before == len(self._left):
                    break
        if name in self._left:
            self._left.remove(name)
        if self._left and (following := self._waits.get(self._left[0])) is not None:
            following.set()
