"""Routines: record finished work once, and repeat it behind guards, without a model."""

from callboard.routines._readable_yaml import dump
from callboard.routines._recording import RoutineRecording, record
from callboard.routines._routine_file import load_routine

__all__ = ["RoutineRecording", "dump", "load_routine", "record"]
