"""Routines: record finished work once, and repeat it behind guards, without a model."""
