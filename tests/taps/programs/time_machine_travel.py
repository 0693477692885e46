"""Travels with time-machine, whose C code takes what stands in `time` for builtins."""

import datetime
import time

import time_machine

for _ in range(2):
    with time_machine.travel(0, tick=False):
        print(time.time())
print(time.time())
with time_machine.travel("2001-02-03T04:05:06+00:00", tick=False):
    print(time.time(), datetime.datetime.now(datetime.UTC), datetime.date.today())
    print(time.monotonic(), time.perf_counter_ns())
print(time.time(), datetime.datetime.now())
print(type(datetime.datetime.now()) is datetime.datetime)
