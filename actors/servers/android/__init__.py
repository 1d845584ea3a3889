"""The adb server's client, with which Android devices are reached."""

from callboard.actors.servers.android._adb import Adb, AdbError, DeviceState, Listed, Ran, find_adb

__all__ = ["Adb", "AdbError", "DeviceState", "Listed", "Ran", "find_adb"]
