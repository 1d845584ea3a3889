"""The machinery below the agents.

Schedulers, event loop, jobs, clock, lanes, leases, budgets, event stream and watchdog.
"""

from callboard.actors.runtime._budget import UNPRICED, BudgetNode, Budgets, day_began
from callboard.actors.runtime._clock import Alarm, Clock, SystemClock, TimeLimit, VirtualClock
from callboard.actors.runtime._event_loop import Awaited, EventLoop
from callboard.actors.runtime._jobs import Jobs
from callboard.actors.runtime._lanes import Lane, Lanes
from callboard.actors.runtime._lease import Lease, Leases
from callboard.actors.runtime._restart_backoff import Restarts
from callboard.actors.runtime._scheduler import LoopScheduler, ScheduledActor, Scheduler, Schedulers, ThreadScheduler
from callboard.actors.runtime._stream import EventFeed, EventStream
from callboard.actors.runtime._subscriber import Subscriber
from callboard.actors.runtime._threads import mark_own_thread, refuse_own_thread
from callboard.actors.runtime._waiting_requests import WaitingRequests
from callboard.actors.runtime._watchdog import HungJobs, Watchdog, stack_of

__all__ = [
    "UNPRICED",
    "Alarm",
    "Awaited",
    "BudgetNode",
    "Budgets",
    "Clock",
    "EventFeed",
    "EventLoop",
    "EventStream",
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
    "WaitingRequests",
    "Watchdog",
    "day_began",
    "mark_own_thread",
    "refuse_own_thread",
    "stack_of",
]
