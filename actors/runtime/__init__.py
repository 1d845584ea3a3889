"""The machinery below the agents.

Schedulers, event loop, jobs, clock, lanes, leases, budgets, event stream and watchdog.
"""

from callboard.actors.runtime._atomic_replace import (
    delete_stale_spares,
    publish_file,
    replace_file,
    spare_file,
    sync_folder,
    write_lock,
)
from callboard.actors.runtime._budget import UNPRICED, BudgetNode, Budgets, day_began
from callboard.actors.runtime._call import MOST_PICTURE_BYTES, MOST_PICTURES, PNG, Call, CallKeeper, current_call
from callboard.actors.runtime._clock import Alarm, Clock, SystemClock, TimeLimit, VirtualClock
from callboard.actors.runtime._event_loop import Awaited, EventLoop
from callboard.actors.runtime._hung_jobs import HungJobs
from callboard.actors.runtime._jobs import Jobs
from callboard.actors.runtime._lanes import Lane, Lanes
from callboard.actors.runtime._lease import (
    EffectGuard,
    Lease,
    Leases,
    committing,
    current_guard,
    foresee,
    keep_version,
    post_note,
)
from callboard.actors.runtime._process import Finished, run_process
from callboard.actors.runtime._restart_backoff import Restarts
from callboard.actors.runtime._scheduler import LoopScheduler, ScheduledActor, Scheduler, Schedulers, ThreadScheduler
from callboard.actors.runtime._stream import EventFeed, EventStream
from callboard.actors.runtime._subscriber import Subscriber
from callboard.actors.runtime._threads import mark_own_thread, refuse_own_thread
from callboard.actors.runtime._user_files import is_link, lock_file, open_file, read_file
from callboard.actors.runtime._watchdog import Watchdog, stack_of

__all__ = [
    "MOST_PICTURES",
    "MOST_PICTURE_BYTES",
    "PNG",
    "UNPRICED",
    "Alarm",
    "Awaited",
    "BudgetNode",
    "Budgets",
    "Call",
    "CallKeeper",
    "Clock",
    "EffectGuard",
    "EventFeed",
    "EventLoop",
    "EventStream",
    "Finished",
    "HungJobs",
    "Jobs",
    "Lane",
    "Lanes",
    "Lease",
    "Leases",
    "LoopScheduler",
    "Restarts",
    "ScheduledActor",
    "Scheduler",
    "Schedulers",
    "Subscriber",
    "SystemClock",
    "ThreadScheduler",
    "TimeLimit",
    "VirtualClock",
    "Watchdog",
    "committing",
    "current_call",
    "current_guard",
    "day_began",
    "delete_stale_spares",
    "foresee",
    "is_link",
    "keep_version",
    "lock_file",
    "mark_own_thread",
    "open_file",
    "post_note",
    "publish_file",
    "read_file",
    "refuse_own_thread",
    "replace_file",
    "run_process",
    "spare_file",
    "stack_of",
    "sync_folder",
    "write_lock",
]
