"""What a supervisor asks of the processes of its command. See `launch.child.environment`."""

from __future__ import annotations

from lockstep.launch.inherit import LANE, Ours


class Settings:
    """As the environment says; a child that is forked in process has no environment of ours.

    mode   record, replay, or fork: that of its children changes when it goes live
    branch  replay: the branch that is replayed; record: the one that is written; fork: its parent's
    lane   the lane that this process runs as
    image  how many programs this process was before the present one; replay: `images` of them, in the
           first process, come before the one that was recorded
    """

    __slots__ = (
        "branch", "debug", "hash_seed", "image", "images", "lane", "meeting", "mode", "ours", "run", "speed", "store",
    )  # fmt: skip

    def __init__(self, mode: str, meeting: str, store: str, run: str, lane: str) -> None:
        self.mode = mode
        self.meeting = meeting
        self.store = store
        self.run = run
        self.lane = lane
        self.branch = "main"
        self.ours: Ours | None = None
        self.speed = 0.0
        self.image = 0
        self.images = 0
        self.debug = False
        self.hash_seed = ""

    @classmethod
    def read(cls, ours: Ours) -> Settings:
        get = ours.get
        found = cls(get("LOCKSTEP_MODE"), get("LOCKSTEP_REPORT"), get("LOCKSTEP_STORE"), get("LOCKSTEP_RUN"), get(LANE))
        found.ours = ours
        found.branch = get("LOCKSTEP_BRANCH") or "main"
        found.speed = float(get("LOCKSTEP_SPEED") or 0.0)
        found.image = int(get("LOCKSTEP_IMAGE") or 0)
        found.images = int(get("LOCKSTEP_IMAGES") or 0)
        found.debug = get("LOCKSTEP_DEBUG") == "1"
        found.hash_seed = get("PYTHONHASHSEED")
        return found
