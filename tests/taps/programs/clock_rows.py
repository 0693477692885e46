"""Every way to ask what time it is, one row each."""

import asyncio
import datetime
import email.utils
import io
import logging
import os
import pickle
import threading
import time
import urllib.request
import warnings
import zipfile
from datetime import datetime as datetime_taken
from time import monotonic as monotonic_taken
from time import time as time_taken
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pydantic
from rows import run


class Stamp(datetime.datetime):
    """A subclass, as pendulum and others have."""


class Holder:
    clock = time.time
    converter = time.localtime


class Timed(pydantic.BaseModel):
    at: datetime.datetime = pydantic.Field(default_factory=datetime.datetime.now)
    day: datetime.date = pydantic.Field(default_factory=datetime.date.today)


def row_time() -> Any:
    return time.time(), time.time_ns()


def row_monotonic() -> Any:
    return time.monotonic(), time.monotonic_ns()


def row_perf_counter() -> Any:
    return time.perf_counter(), time.perf_counter_ns()


def row_process_time() -> Any:
    return time.process_time(), time.process_time_ns()


def row_thread_time() -> Any:
    return time.thread_time(), time.thread_time_ns()


def row_clock_gettime() -> Any:
    return time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def row_unknown_clock() -> Any:
    return time.clock_gettime(9999)


def row_localtime() -> Any:
    return time.localtime(), time.localtime(None), time.localtime(5)


def row_gmtime() -> Any:
    return time.gmtime(), time.gmtime(5)


def row_strftime() -> Any:
    return time.strftime("%Y-%m-%d %H:%M:%S"), time.strftime("%H", time.gmtime(0))


def row_ctime() -> Any:
    return time.ctime(), time.ctime(0), time.asctime(), time.asctime(time.gmtime(0))


def row_wrong_arguments() -> Any:
    found = []
    for call in (lambda: time.time(1), lambda: time.localtime("x"), time.strftime, lambda: time.asctime(None)):
        try:
            found.append(call())
        except TypeError:
            found.append("TypeError")
    return found


def row_names_taken_before() -> Any:
    return time_taken(), monotonic_taken(), datetime_taken.now()


def row_class_attribute() -> Any:
    return Holder().clock(), Holder().converter(5)


def row_datetime_now() -> Any:
    return datetime.datetime.now(), datetime.datetime.now(datetime.UTC), datetime.datetime.now(ZoneInfo("Asia/Tokyo"))


def row_datetime_today() -> Any:
    return datetime.datetime.today()


def row_utcnow() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return datetime.datetime.utcnow(), Stamp.utcnow()


def row_utcnow_warning() -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        datetime.datetime.utcnow()
    return [(str(w.message), w.category.__name__, os.path.basename(w.filename), w.lineno) for w in caught]


def row_date_today() -> Any:
    return datetime.date.today()


def row_isinstance() -> Any:
    now, day = datetime.datetime.now(), datetime.date.today()
    return type(now) is datetime.datetime, type(day) is datetime.date, isinstance(now, datetime.datetime)


def row_subclass() -> Any:
    found = Stamp.now(), Stamp.today(), Stamp.now(datetime.UTC)
    return found, [type(item) is Stamp for item in found], isinstance(datetime.datetime.now(), Stamp)


def row_pickle() -> Any:
    now = datetime.datetime.now()
    return now, pickle.loads(pickle.dumps(now)) == now, pickle.loads(pickle.dumps(time.time)) is time.time


def row_pydantic() -> Any:
    made = Timed()
    return made, Timed.model_validate_json(made.model_dump_json()) == made, Timed(at=datetime.datetime.now())


def row_msgspec() -> Any:
    now = datetime.datetime.now()
    return msgspec.json.encode([now, datetime.date.today()]).decode(), msgspec.convert(now, datetime.datetime) == now


def row_orjson() -> Any:
    import orjson

    return orjson.dumps([datetime.datetime.now(datetime.UTC), datetime.date.today()]).decode()


def row_logging() -> Any:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(created)f %(relativeCreated)09d %(message)s"))
    logger = logging.Logger("rows")
    logger.addHandler(handler)
    for number in range(3):
        logger.warning("line %d", number)
    return stream.getvalue().splitlines()


def row_email() -> Any:
    return email.utils.formatdate(usegmt=True), email.utils.localtime()


def row_zip() -> Any:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a", "b")
    return made.getvalue()


def row_freezegun() -> Any:
    import freezegun

    with freezegun.freeze_time("2001-02-03 04:05:06"):
        frozen = time.time(), datetime.datetime.now(), datetime.date.today()
    return repr(frozen), time.time(), type(datetime.datetime.now()) is datetime.datetime


def row_tasks() -> Any:
    async def one(number: int) -> Any:
        await asyncio.sleep(0.001 * (3 - number))
        return number, time.time(), datetime.datetime.now(), time.monotonic()

    async def all_of_them() -> Any:
        return await asyncio.gather(*map(one, range(3)))

    return asyncio.run(all_of_them())


def row_threads() -> Any:
    found: dict[int, Any] = {}

    def one(number: int) -> None:
        found[number] = [time.time() for _ in range(3)]

    threads = [threading.Thread(target=one, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found.items())


def row_while_another_thread_is_in_a_call() -> Any:
    answers = []

    def ask() -> None:
        with urllib.request.urlopen(os.environ["SLOW_URL"]) as response:
            answers.append(response.read())

    thread = threading.Thread(target=ask)
    thread.start()
    readings = [(time.time(), datetime.datetime.now()) for _ in range(20)]
    thread.join()
    return answers, readings


def row_busy_wait() -> Any:
    start, spins = time.perf_counter(), 0
    while time.perf_counter() - start < 0.02:
        spins += 1
    return spins


if __name__ == "__main__":
    run(globals())
