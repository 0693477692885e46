"""A session that replays: it serves what was recorded, and finds the first difference."""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from lockstep.errors import Code, Cut, Difference, Divergence
from lockstep.log import canonical
from lockstep.log.model import Kind, Status, Value
from lockstep.session import current, difference, engine, lanes, reads, sites
from lockstep.session.effects import Handed, ServedCall
from lockstep.session.gate import Gate, Stopped
from lockstep.session.lanes import Lane
from lockstep.session.printed import Printed
from lockstep.session.report import Report
from lockstep.session.surface import UNKNOWN, Session, ending
from lockstep.session.tape import LaneTape, Recorded, Slot, Tape
from lockstep.session.turns import Turns

_sleep = time.sleep  # before the taps


class Replaying(Session):
    """Every answer comes from the tape; the first difference is latched."""

    recording = False
    gate: Gate

    def __init__(self, run: str, process: str, seed: bytes, tape: Tape, speed: float, deadline: float) -> None:
        self.tape = tape
        self.interrupted = tape.interrupted
        self.gate = Gate(tape.slots, speed)
        self.printer: Callable[[str, Value], None] | None = None
        self._deadline = deadline
        self._first: Difference | None = None
        self._cut = False
        self._turns: dict[str, Turns] = {}
        self._blocked = 0
        self.wakes: dict[int, Callable[[Any], None]] = {}  # slot -> lets a callback from another thread run
        super().__init__(run, process, seed)
        if self.interrupted or len({slot.strand for slot in tape.slots}) > 1:
            _thread.start_new_thread(self._watch, ())

    def new_lane(self, name: str, parent: Lane | None, strand: Lane | None) -> Lane:
        lane = super().new_lane(name, parent, strand)
        lane.state = self.tape.lane(name)
        return lane

    def open(self, kind: str) -> Any:
        parent = lanes.inside()
        if parent is not None:
            self.diverge(Code.EXTRA, f"a {kind} call from inside a served effect", kind=kind)
        if self.stopped:
            self.raise_latched()
        return ServedCall(self, lanes.lane(), kind)

    def match(self, lane: Lane, kind: str, name: str, key: bytes, request: Value) -> Recorded | None:
        """The recorded effect for this call; None past the cut of an interrupted run."""
        if self.stopped:
            self.raise_latched()
        decision = engine.match(lane.state, key, self.interrupted)
        if isinstance(decision, engine.Beyond):
            return None
        if isinstance(decision, engine.Diverge):
            self._unmatched(lane, kind, name, request, decision)
        recorded = decision.effect
        if recorded.begin.kind is Kind.BEGIN:
            expected = self.tape.request(recorded).get("reads", {})
            self._compare_reads(lane, expected if isinstance(expected, dict) else {}, kind, name)
        return recorded

    def cause(self, lane: Lane | None, what: str, number: int | str) -> Slot | None:
        """The recorded cause with this number in this lane, None if it never came. Wake-ups of a loop
        have names that are unique without a lane."""
        return self.tape.causes.get((lane.name if lane is not None else "", what, str(number)))

    def turns(self, lock: str) -> Turns | None:
        """The recorded turns of a lock, None if only one strand ever took it."""
        with self._lock:
            found = self._turns.get(lock)
            if found is None and lock in self.tape.turns:
                found = self._turns[lock] = Turns(self, self.tape.turns[lock])
            return found

    @contextmanager
    def blocking(self) -> Iterator[None]:
        """Around a wait for another strand outside the gate, for the watchdog."""
        self._blocked += 1
        try:
            yield
        finally:
            self._blocked -= 1

    def hold(self, lock: Any) -> bool:
        """Takes a plain lock that another strand will release, however long that takes."""
        with self.blocking():
            while not lock.acquire(True, 0.25):
                if self.stopped:
                    self.raise_latched()
        return True

    def never(self, lane: Lane, what: str) -> NoReturn:
        """The recorded program never got past this: it was cut, or it ended while this strand waited."""
        if self.interrupted:
            self.cut_here()
        if lane.strand is self.root:
            self.diverge(Code.EXTRA, f"the recorded program never waited here ({what})", lane=lane, kind=what, name=what)
        self.gate.wait_stop()
        self.raise_latched()

    def step(self, name: str, state: Value) -> None:
        lane = lanes.lane()
        key = canonical.key("step", name, state)
        recorded = self.match(lane, "step", name, key, {"state": state})
        if recorded is None:
            self.cut_here()
        self.log_of(lane).append(Handed(key, recorded.begin.pos))
        self.count("step")
        if recorded.slot is not None:
            self.wait(recorded.slot)

    def wait(self, slot: Slot) -> None:
        """Blocks this thread until the slot's turn. Raises what was latched."""
        try:
            self.gate.wait(slot)
        except Stopped:
            self.raise_latched()

    def output(self, channel: str, data: str | bytes) -> None:
        if lanes.inside() is not None:
            return
        lane = lanes.lane()
        printed = self._channel(lane, channel)
        differs = printed.write(data)
        if differs is not None and self._first is None and not self._cut:
            self.latch(
                Code.OUTPUT, f"another {channel} than recorded", lane=lane, kind="output", name=channel,
                expected=differs[0], actual=differs[1],
            )  # fmt: skip

    def _channel(self, lane: Lane, channel: str) -> Printed:
        found = self._printed.get((lane.name, channel))
        if found is None:
            body = self.tape.body
            pieces = [lambda seq=seq: body(seq) for seq in lane.state.output.get(channel, [])]
            found = self._printed[(lane.name, channel)] = Printed(pieces, self.interrupted)
        return found

    def replay_output(self, effect: Recorded) -> None:
        """Prints what a served effect printed itself while it was recorded."""
        if self.printer is not None:
            for seq in effect.output:
                self.printer("stdout", self.tape.body(seq))
        effect.output = []

    # The latch.

    def latch(self, code: Code, reason: str, **about: Any) -> None:
        with self._lock:
            if self._first is not None or self._cut:
                return
            lane = about.get("lane")
            call = about.get("call")
            if lane is None:
                lane = call.lane if call is not None else None
            step = about.get("step", self._step_now(lane))
            self._first = Difference(
                code=code,
                reason=reason,
                step=step,
                lane=lane.name if isinstance(lane, Lane) else (lane or lanes.lane().name),
                kind=about.get("kind") or (call._kind if call is not None else ""),
                name=about.get("name") or (call.name if call is not None else ""),
                source=about.get("source") or sites.site(2),
                path=about.get("path", ""),
                expected=difference.cut(str(about.get("expected", ""))),
                actual=difference.cut(str(about.get("actual", ""))),
                nearest=tuple(about.get("nearest", ())),
                same_until=step - 1 if step else None,
            )
        self._stop()

    def latched(self) -> BaseException:
        if self._first is not None:
            return Divergence(self._first)
        return Cut("the end of the interrupted recording")

    def refuse(self, reason: str) -> None:
        """In a forked child: whatever it asks for from here on is refused. Its report reaches nobody."""
        self.on_stop = None
        self._lock = _thread.allocate_lock()
        self.gate = Gate([], 0.0)
        self.latch(Code.NOT_COVERED, reason, lane=self.root, kind="process", name="fork")

    def cut(self) -> None:
        """Latches the cut: everything recorded has happened."""
        with self._lock:
            if self._first is not None or self._cut:
                return
            self._cut = True
        self._stop()

    def cut_here(self, lane: Lane | None = None) -> NoReturn:
        """This strand went past the cut: it waits for the others to get there, then stops."""
        self.gate.wait_all()
        self.cut()
        self.raise_latched()

    def missing(self, head: Slot | None) -> None:
        """Latches that the program waits for nothing that can come, or never made the call at `head`."""
        if head is None:
            self.latch(Code.STUCK, "the program waits for something that never came in the recording")
            return
        event = head.event
        kind, name, lane = event.what, event.name, event.lane
        owner = self.tape.effect(event.of)
        if event.kind in (Kind.PART, Kind.END) and owner is not None:
            kind, name = owner.begin.what, owner.begin.name
            code, reason = Code.PAST_END, f"the recorded program read more of this {kind} answer"
            if event.what == Status.CANCELLED:
                code, reason = Code.ORDER, "the recorded program cancelled this call, now nobody does"
            self.latch(code, reason, lane=lane, kind=kind, name=name, step=self._step_of(owner.begin.pos))
        elif event.kind is Kind.CAUSE:
            self.latch(
                Code.MISSING, f"the recorded {kind} never began", lane=lane, kind=kind, name=f"{kind} {name}",
                step=self._step_of(event.pos),
            )  # fmt: skip
        else:
            self._missing_call(event.lane, head.seq, event)

    def _missing_call(self, lane: str, seq: int, event: Any) -> None:
        body = self.tape.body(seq) if event.kind is Kind.BEGIN else None
        request = body.get("request") if isinstance(body, dict) else body
        site = str(body.get("site", "")) if isinstance(body, dict) else event.what
        self.latch(
            Code.MISSING, "a recorded call was never made", lane=lane,
            kind=event.what if event.kind is Kind.BEGIN else "step", name=event.name, source=site,
            expected=difference.shown(request), actual="(no call)", step=self._step_of(event.pos),
        )  # fmt: skip

    def _unmatched(self, lane: Lane, kind: str, name: str, request: Value, decision: engine.Diverge) -> NoReturn:
        expected = decision.expected
        path = recorded = now = ""
        if expected is not None:
            body = self.tape.request(expected).get("request") if expected.begin.kind is Kind.BEGIN else None
            if expected.begin.what != kind or expected.begin.name != name:
                recorded, now = f"{expected.begin.what} {expected.begin.name}", f"{kind} {name}"
            else:
                found = difference.first(body, request)
                path, recorded, now = found if found is not None else ("", difference.shown(body), "")
        else:
            now = f"{kind} {name} {difference.shown(request)}"
        # A field that is never part of a match key (a header of the client's own) is no reason.
        self.diverge(
            decision.code, decision.reason, lane=lane, kind=kind, name=name, path=path, expected=recorded,
            actual=now, nearest=self._nearest(lane.state, request),
        )  # fmt: skip

    def _nearest(self, lane: LaneTape, request: Value) -> list[str]:
        # Leaf sets, not edit distance: 1.8 ms over a window of 100 requests.
        wanted = set(difference.leaves(request))
        around = lane.effects[max(0, lane.cursor - 50) : lane.cursor + 50]
        scored = []
        for effect in around:
            if effect.begin.kind is Kind.BEGIN:
                body = self.tape.request(effect).get("request")
                scored.append((len(wanted ^ set(difference.leaves(body))), effect))
        scored.sort(key=lambda item: item[0])
        return [f"step {self._step_of(e.begin.pos)}: {e.begin.what} {e.begin.name}" for _, e in scored[:3]]

    def _compare_reads(self, lane: Lane, expected: dict[str, Any], kind: str, name: str) -> None:
        found = reads.compare(expected, lane.reads)
        if found is not None:
            source, recorded, now = found
            self.diverge(
                Code.READS, f"{source} was read {now} times before this call, {recorded} when recorded",
                lane=lane, kind=kind, name=name, path=source, expected=recorded, actual=now,
            )  # fmt: skip

    def _step_of(self, pos: int) -> int:
        """The number of the step in which the effect that begins at `pos` falls: those completed before, plus one."""
        done = 0
        for lane in self.tape.lanes.values():
            for effect in lane.effects:
                if self._completed(effect) < pos:
                    done += 1
        return done + 1

    @staticmethod
    def _completed(effect: Recorded) -> float:
        if effect.begin.kind is Kind.STEP:
            return effect.begin.pos
        if effect.ended:
            return effect.pieces[-1][1].pos
        return float("inf")

    def _step_now(self, lane: Any) -> int:
        if isinstance(lane, Lane) and lane.state is not None and lane.state.cursor < len(lane.state.effects):
            return self._step_of(lane.state.effects[lane.state.cursor].begin.pos)
        head = self.gate.head()
        return self._step_of(head.event.pos) if head is not None else self._step_of(sys.maxsize)

    def _stop(self) -> None:
        self.stopped = True
        self.gate.stop()
        for turns in list(self._turns.values()):
            turns.stop()
        if self.on_stop is not None:
            self.on_stop()

    def _watch(self) -> None:
        """Never a hang: where strands wait for each other and nothing moves for the deadline, says so.

        A strand that computes is progress too: it shows as processor time.
        """
        quiet, last = 0.0, (-1, 0.0)
        while not self.stopped and current.session is self:
            _sleep(0.25)
            times = os.times()
            now = (self.gate.progress, times.user + times.system)
            busy = now[0] != last[0] or now[1] - last[1] > 0.0125
            last = now
            quiet = 0.0 if busy else quiet + 0.25
            head = self.gate.head()
            if head is None and self.interrupted and quiet >= 1.0:
                self.cut()  # all that was recorded has happened, and everybody waits
            elif quiet >= self._deadline and (self._blocked or self.gate.blocked()):
                self.missing(head)

    def flush(self, timeout: float = 10.0) -> bool:
        return True

    def strand_ended(self, lane: Lane) -> None:
        super().strand_ended(lane)
        # A thread that is over makes no more calls: what is left of its lane was never asked.
        if not self.stopped and not self.interrupted and lane.state is not None:
            unused = engine.left([lane.state])
            if unused is not None:
                self._missing_call(lane.name, unused.seq, unused.begin)

    def finish(self, exit: int | None, error: BaseException | None, result: Value = UNKNOWN) -> Report:
        end = ending(exit, error, result)
        recorded = self._recorded_end().get("end")
        if not (isinstance(recorded, dict) and "result" in recorded):
            end.pop("result", None)  # nobody knows what the recorded one would have been
        digest = engine.digest(self.sums(), canonical.digest(end))
        if self._first is None and not self._cut:
            self._compare_end(end, digest)
        identical = self._first is None and not self.faults and not self.notes
        self.stopped = True
        self.gate.stop()
        return self._report(
            "replay", digest, exit, identical=identical, cut=self._cut, difference=self._first,
        )  # fmt: skip

    def _recorded_end(self) -> dict[str, Any]:
        body = self.tape.body(self.tape.finish_seq) if self.tape.finish is not None else None
        return body if isinstance(body, dict) else {}

    def _compare_end(self, end: dict[str, Value], digest: bytes) -> None:
        unused = engine.left(self.tape.lanes.values())
        if unused is not None and not self.interrupted:
            self._missing_call(unused.begin.lane, unused.seq, unused.begin)
            return
        if self.tape.finish is None:
            # The program ended by itself before it got to the cut: that is another run.
            head = self.gate.head()
            self.latch(
                Code.END, "the program ended; the recording goes on", lane=self.root, kind="end", name="end",
                expected=f"{head.event.kind.name.lower()} {head.event.name}" if head is not None else "more", actual="end",
            )  # fmt: skip
            return
        finish = self._recorded_end()
        self._compare_lanes(finish)
        if self._first is not None:
            return
        found = difference.first(finish.get("end"), end)
        if found is not None:
            path, was, now = found
            self.latch(
                Code.END, "the program ended in another way", lane=self.root, kind="end", name="end", path=path,
                expected=was, actual=now, step=self._step_of(sys.maxsize),
            )  # fmt: skip
        elif finish.get("digest") != digest:
            self.latch(
                Code.END, "the digest of the replay is not the recorded one", lane=self.root, kind="end",
                name="digest", expected=_hex(finish.get("digest")), actual=digest.hex(),
            )  # fmt: skip

    def _compare_lanes(self, finish: dict[str, Any]) -> None:
        every: dict[str, dict[str, int]] = finish.get("reads", {})
        for name in sorted({*every, *self.lanes}):
            lane = self.lanes.get(name)
            found = reads.compare(every.get(name, {}), lane.reads if lane is not None else {})
            if found is not None:
                source, recorded, now = found
                self.latch(
                    Code.READS, f"{source} was read {now} times, {recorded} when recorded", lane=name, kind="read",
                    name=source, path=source, expected=recorded, actual=now, step=self._step_of(sys.maxsize),
                )  # fmt: skip
                return
        for name, lane_tape in sorted(self.tape.lanes.items()):
            for channel in lane_tape.output:
                lane = self.lanes.get(name)
                if lane is None:
                    continue
                line = self._channel(lane, channel).left()
                if line is not None:
                    self.latch(
                        Code.OUTPUT, f"recorded {channel} was not printed", lane=name, kind="output", name=channel,
                        expected=line, actual="(nothing)", step=self._step_of(sys.maxsize),
                    )  # fmt: skip
                    return
            for effect, handed in zip(lane_tape.effects, self._handed.get(name, ()), strict=False):
                last = effect.pieces[-1][1] if effect.ended else None
                if last is not None and last.key and last.key != handed.digest():
                    self.latch(
                        Code.PAST_END, "the recorded program read more of this answer", lane=name,
                        kind=effect.begin.what, name=effect.begin.name, step=self._step_of(effect.begin.pos),
                    )  # fmt: skip
                    return


def _hex(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
