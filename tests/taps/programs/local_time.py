"""Local time by every road, and the variable that a program may look at itself."""

import datetime
import os
import time

stamp = 1_700_000_000
print(time.localtime(stamp).tm_hour, time.tzname, datetime.datetime.fromtimestamp(stamp))
print(datetime.datetime.fromtimestamp(stamp, datetime.UTC).astimezone().isoformat())
print(os.environ.get("SHOWN", os.environ.get("TZ") is not None))
