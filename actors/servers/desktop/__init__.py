"""The Linux desktop: windows of running applications, by accessibility and by real input."""

from callboard.actors.servers.desktop._desktop import DesktopServer

__all__ = ["DesktopServer"]
