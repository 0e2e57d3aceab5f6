"""The app around a page that offers streams, with a window into its memory, for tests.

It has less patience for those who do not read.
"""

from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from hookviz.hooking import network_state
from hookviz.live.streams import streams
from hookviz.serving import capacity
from hookviz.ui.serving import connections, flow_control, lifecycle

flow_control.SEND_TIMEOUT = 2.0


async def probe(_request: Request) -> JSONResponse:
    """How many streams there are and runs compute, kept bytes, and hooks that are on a replica.

    What all share of a sample does not count: the server's start has made some.
    """
    idle = [replica.network for pool in list(network_state._idle.values()) for replica in pool]
    hooks = [len(module._forward_hooks) for network in idle for module in network.modules()]
    return JSONResponse(
        {
            "live": streams().live,
            "running": capacity.queue().running,
            "used": capacity.activation_budget().used - capacity.sample_activations().used,
            "replicas": len(idle),
            "hooks": sum(hooks),
        }
    )


lifecycle.share_cores()
app = st.App(
    Path(__file__).with_name("live_script.py"),
    middleware=connections.MIDDLEWARE,
    lifespan=lifecycle.lifespan,
    on_script_error=lifecycle.on_script_error,
    routes=[*lifecycle.ROUTES, Route("/probe", probe)],
)
