"""A fleet of machines in network namespaces of their own, whose links go down and lose packets.

The machines and the server are joined by a bridge, in one more namespace. The server encrypts, as the settings demand
it between machines. Whatever ends the test, also a kill, a process of its own ends all processes in the namespaces, and
deletes them with their links.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fleet_lab import FleetLab
from nats_server import PROGRAM, NatsServer, check_for_server
from support import PATIENCE, wait_for

SERVER = "10.77.0.1"
CLEANER = """
cat >/dev/null
for name in "$@"; do ip netns pids "$name" | xargs -r kill -9; done
for name in "$@"; do ip netns delete "$name"; done
"""
"""Waits for the end of its input, which the system closes with the test's process."""
LOSSES = (
    ("netem", "delay", "50ms", "20ms", "loss", "10%"),
    ("tbf", "rate", "96kbit", "burst", "3000", "limit", "6000"),
)
"""Disciplines that delay packets and lose some: the second one where the kernel lacks the first, by a short queue."""


class Network:
    """Namespaces at a bridge."""

    def __init__(self, name: str, hosts: list[str]) -> None:
        self._name = name
        self._hub = f"{name}-hub"
        names = [self._hub, *map(self.namespace, hosts)]
        command = ("sh", "-c", CLEANER, "cleaner", *names)
        self._cleaner = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        for namespace in names:
            run("ip", "netns", "add", namespace)
        run("ip", "-n", self._hub, "link", "add", "name", "bridge", "type", "bridge")
        run("ip", "-n", self._hub, "link", "set", "dev", "bridge", "up")
        for number, host in enumerate(hosts, start=1):
            self._add(host, self.namespace(host), f"10.77.0.{number}/24")

    def _add(self, host: str, namespace: str, address: str) -> None:
        pair = ("name", host, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        run("ip", "-n", self._hub, "link", "add", *pair)
        run("ip", "-n", self._hub, "link", "set", "dev", host, "master", "bridge", "up")
        run("ip", "-n", namespace, "address", "add", address, "dev", "eth0")
        for device in ("lo", "eth0"):
            run("ip", "-n", namespace, "link", "set", "dev", device, "up")

    def namespace(self, host: str) -> str:
        """Return the namespace of a host."""
        return f"{self._name}-{host}"

    def inside(self, host: str) -> tuple[str, ...]:
        """Return the begin of a command that runs in a namespace, in the process that it was started as."""
        return ("ip", "netns", "exec", self.namespace(host))

    def set_link(self, host: str, state: str) -> None:
        """Take a host's link ``up`` or ``down``."""
        run("ip", "-n", self._hub, "link", "set", "dev", host, state)

    def lose_packets(self, host: str) -> None:
        """Delay the packets of both directions, and lose some."""
        for namespace, device in ((self._hub, host), (self.namespace(host), "eth0")):
            command = ("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root")
            assert any(is_done(*command, *loss) for loss in LOSSES), "the kernel has no discipline that loses packets"

    def mend(self, host: str) -> None:
        """Carry all packets again."""
        self.set_link(host, "up")
        for namespace, device in ((self._hub, host), (self.namespace(host), "eth0")):
            is_done("tc", "-n", namespace, "qdisc", "delete", "dev", device, "root")

    def close(self) -> None:
        """Delete it with all processes in it."""
        assert self._cleaner.stdin is not None
        self._cleaner.stdin.close()
        self._cleaner.wait(PATIENCE)


def run(*command: str) -> None:
    """Run a command that must not fail."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


def is_done(*command: str) -> bool:
    """Run a command, and return whether it did not fail."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class NamespaceLink:
    """A machine's link to the bridge."""

    url = f"tls://{SERVER}:4222"

    def __init__(self, network: Network, host: str) -> None:
        self._network = network
        self._host = host
        self.command = network.inside(host)

    def cut(self) -> None:
        """Take it down: neither side is told."""
        self._network.set_link(self._host, "down")

    block = cut

    def degrade(self) -> None:
        """Delay packets, and lose some."""
        self._network.lose_packets(self._host)

    def mend(self) -> None:
        """Carry everything again."""
        self._network.mend(self._host)

    def close(self) -> None:
        """Leave it to the network."""


class NamespaceServer(NatsServer):
    """A server of NATS in a namespace, with TLS."""

    def __init__(self, folder: Path, network: Network) -> None:
        super().__init__(folder, port=4222)
        self._command = network.inside("server")
        self.link = NamespaceLink(network, "server")
        self.certificate = folder / "server.crt"
        folder.mkdir()
        key, name = folder / "server.key", ("-subj", "/CN=fleet", "-addext", f"subjectAltName=IP:{SERVER}")
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        run("openssl", "req", "-x509", *curve, "-keyout", str(key), "-out", str(self.certificate), "-days", "2", *name)
        self._options = ("--tls", f"--tlscert={self.certificate}", f"--tlskey={key}")

    @property
    def url(self) -> str:
        """Its address for the machines."""
        return self.link.url

    def start(self) -> None:
        """Start it; the machines wait until it answers."""
        command = (*self._command, PROGRAM, "-a", SERVER, "-p", "4222", "-js", "-sd", str(self.folder), *self._options)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class NamespaceLab(FleetLab):
    """Machines in namespaces, and a server."""

    def __init__(self, folder: Path, hosts: list[str]) -> None:
        folder.mkdir()
        self.network = Network(f"cb{os.getpid()}", ["server", *hosts])
        try:
            self.guarded_server = NamespaceServer(folder / "server", self.network)
            self.guarded_server.start()
            super().__init__(folder, self.guarded_server)
        except BaseException:
            self.network.close()
            raise

    def set_up(self) -> None:
        """Make the streams with the command, once the server answers."""
        settings = {"fleet": {"url": self.server.url, "name": "desk", "ca": str(self.guarded_server.certificate)}}
        path = self.folder / "callboard.yaml"
        path.write_text(yaml.safe_dump(settings))
        command = (*self.network.inside("desk"), sys.executable, "-m", "callboard", "fleet", "setup", str(path))
        wait_for(lambda: is_done(*command))

    def make_link(self, name: str) -> NamespaceLink:
        """Make the way of a machine to the server."""
        return NamespaceLink(self.network, name)

    def settings(self) -> dict[str, str]:
        """Return the settings of the connection."""
        return {"ca": str(self.guarded_server.certificate)}

    def close(self) -> None:
        """End everything."""
        super().close()
        self.server.stop(signal.SIGKILL)
        self.network.close()


def check_for_namespaces() -> None:
    """Skip the test where no namespaces can be made; else, with ``REQUIRE_NATS``, missing programs fail it."""
    check_for_server()
    missing = [name for name in ("ip", "tc", "openssl") if shutil.which(name) is None]
    probe = f"cb{os.getpid()}-probe"
    if not is_done("unshare", "--net", "true") or os.geteuid():
        pytest.skip("network namespaces need root, and a kernel that permits them")
    if missing:
        text = f"{' and '.join(missing)} are missing: apt-get install iproute2 openssl"
        (pytest.fail if os.environ.get("REQUIRE_NATS") else pytest.skip)(text)
    if not is_done("ip", "netns", "add", probe):
        pytest.skip("ip netns makes no namespaces here")
    made_pair = is_done("ip", "-n", probe, "link", "add", "name", "one", "type", "veth", "peer", "name", "two")
    run("ip", "netns", "delete", probe)
    if not made_pair:
        pytest.skip("this kernel makes no links between namespaces")
