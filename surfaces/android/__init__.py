"""Android devices as a surface, and a client of the adb server."""

from callboard.surfaces.android._adb import Adb, AdbError, DeviceState, Listed, Ran
from callboard.surfaces.android._adb_process import find_adb
from callboard.surfaces.android._android import AndroidSurface

__all__ = ["Adb", "AdbError", "AndroidSurface", "DeviceState", "Listed", "Ran", "find_adb"]
