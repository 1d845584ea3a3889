"""Rules for the hosts of pages, their proxy, and servers on loopback.

The proxy and the servers are imported at their first use: the proxy needs the extra ``browser``. Nothing here imports
other parts of the package, so that a program of its own starts in a moment.
"""

from typing import TYPE_CHECKING

from callboard._lazy_names import lazy_names
from callboard.network._host_addresses import canonical_host
from callboard.network._network_rules import EVERY_HOST, HTTP_PORT, HTTPS_PORT, HostRule, NetworkRules, Refusal
from callboard.network._proxy_credentials import AGENTS_PROXY, ProxyCredentials

if TYPE_CHECKING:
    from callboard.network._context_proxy import ContextProxy
    from callboard.network._loopback_server import LOOPBACK, LoopbackServer, listening
    from callboard.network._network_proxy import NetworkProxy, ProxyAccess, ProxyLimits
    from callboard.network._web_requests import Person, is_same_origin, json_body, person_of

__all__ = [
    "AGENTS_PROXY",
    "EVERY_HOST",
    "HTTPS_PORT",
    "HTTP_PORT",
    "LOOPBACK",
    "ContextProxy",
    "HostRule",
    "LoopbackServer",
    "NetworkProxy",
    "NetworkRules",
    "Person",
    "ProxyAccess",
    "ProxyCredentials",
    "ProxyLimits",
    "Refusal",
    "canonical_host",
    "is_same_origin",
    "json_body",
    "listening",
    "person_of",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of this package's
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "callboard.network._context_proxy": ("ContextProxy",),
            "callboard.network._loopback_server": ("LOOPBACK", "LoopbackServer", "listening"),
            "callboard.network._network_proxy": ("NetworkProxy", "ProxyAccess", "ProxyLimits"),
            "callboard.network._web_requests": ("Person", "is_same_origin", "json_body", "person_of"),
        },
    )
