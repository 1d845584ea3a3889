"""Routines: record finished work once, and repeat it behind guards, without a model."""

from callboard.routines._follower import RoutineFollower
from callboard.routines._task_routines import TaskRoutines

__all__ = ["RoutineFollower", "TaskRoutines"]
