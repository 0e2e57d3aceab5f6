"""Wrap what HookViz uses of Streamlit and uvicorn beyond what they promise, in one place.

No other module imports from a private part of theirs or reads a private attribute of their objects;
`tests/ui/test_streamlit_internals.py` holds the package to that. The same test is the contract with
the installed Streamlit: it names the version on which all of this was last seen to be there, and
pyproject.toml pins that version until the test is green on a newer one.
"""

import hashlib
import sys
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.formparsers import MultiPartParser
from starlette.types import Receive
from streamlit import config, delta_generator
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime import get_instance
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.runtime import RuntimeState
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.server_util import is_xsrf_enabled
from streamlit.web.server.starlette.starlette_app_utils import (
    decode_xsrf_token_string,
    validate_xsrf_token,
)
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME
from streamlit.web.server.starlette.starlette_websocket import _is_origin_allowed

__all__ = [
    "PAGE_SOCKET",
    "SCRIPT_STATE",
    "TEST_IDS",
    "UPLOAD_PATH",
    "XSRF_COOKIE_NAME",
    "BackMsg",
    "DecodeError",
    "ForwardMsg",
    "WidgetState",
    "abort_connection",
    "browser_key",
    "discard_pending_messages",
    "expect_a_server",
    "forget_ended_sessions",
    "forget_upload",
    "is_callback",
    "is_callback_at_history_step",
    "is_from_history",
    "is_origin_allowed",
    "is_same_browser",
    "is_session_active",
    "is_session_lost",
    "keep_uploads_in_memory",
    "page_runs_without_error",
    "registered_widgets",
    "request_rerun",
    "send_query",
    "send_runs_whole",
    "session_id",
    "set_option",
    "uploaded_bytes",
    "uploaded_file_sizes",
    "write_query",
]

_clear_queue = ForwardMsgQueue.clear
_ANSWERS = {"file_urls_response", "backend_operation_response"}
_TOKEN_BYTES = 16  # of an XSRF token that Streamlit made

PAGE_SOCKET = "/_stcore/stream"
"""Path of the WebSocket between Streamlit's page and its server."""

UPLOAD_PATH = "/_stcore/upload_file"
"""Path to which Streamlit's page sends a file; the session's id and the file's follow."""

TEST_IDS = frozenset(
    {
        "stAlert",
        "stAlertContainer",
        "stApp",
        "stButton",
        "stButtonGroup",
        "stCameraInput",
        "stCaptionContainer",
        "stCode",
        "stColumn",
        "stDialog",
        "stDownloadButton",
        "stElementToolbarButton",
        "stExpandSidebarButton",
        "stExpanderDetails",
        "stHeader",
        "stHeading",
        "stHorizontalBlock",
        "stMain",
        "stMainBlockContainer",
        "stMarkdownContainer",
        "stPopover",
        "stPopoverBody",
        "stProgress",
        "stSelectbox",
        "stSidebar",
        "stSidebarCollapseButton",
        "stSidebarContent",
        "stSidebarHeader",
        "stSidebarUserContent",
        "stToolbar",
        "stTooltipContent",
        "stTooltipIcon",
        "stVerticalBlock",
        "stWidgetLabel",
    }
)
"""Every ``data-testid`` (or class of that name) by which our CSS and JavaScript find an element."""

SCRIPT_STATE = ("data-test-script-state", "running")
"""Attribute of ``stApp`` that says what the page's script does, and its value during a run."""


def is_origin_allowed(origin: str | None, host: str | None) -> bool:
    """Return whether Streamlit would open its own WebSocket for these two headers.

    Else a page of another site could open ours in a visitor's browser, with the visitor's cookies.
    """
    return _is_origin_allowed(origin, host)


def is_same_browser(cookie: str | None, offered: str) -> bool:
    """Return whether two values of the XSRF cookie hold the same token, and so are of one browser.

    The token is masked anew each time the cookie is set, so that the values are not equal.

    Args:
        cookie: of the request.
        offered: of the page that the request claims to come from.
    """
    return not is_xsrf_enabled() or validate_xsrf_token(offered, cookie)


def browser_key(cookie: str) -> str:
    """Return what stands for the browser with this XSRF cookie, however its token is masked.

    It is empty where there is no token, or none that can't be guessed. The token itself, by which
    the browser's requests are known, can't be read from it.
    """
    token, _ = decode_xsrf_token_string(cookie) if is_xsrf_enabled() else (None, None)
    return hashlib.sha256(token).hexdigest() if token and len(token) >= _TOKEN_BYTES else ""


def set_option(name: str, value: Any) -> None:
    """Set an option of Streamlit's server, which ``st.set_option`` refuses once it is imported."""
    config.set_option(name, value)


def session_id() -> str | None:
    """Return Streamlit's id of the session whose script runs in this thread; None in any other."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else None


def is_from_history() -> bool:
    """Return whether the browser's Back or Forward asked for this run of the script."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def is_callback() -> bool:
    """Return whether a widget's callback runs, and not the page's script yet."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and not context.has_script_started


def is_callback_at_history_step() -> bool:
    """Return whether a widget's callback runs for the browser's Back or Forward."""
    return is_from_history() and is_callback()


def write_query(changes: Mapping[str, str | None]) -> None:
    """Write words of the query, None for left out, without a message to the browser.

    `st.query_params` sends one for each word that is left out, and each would be a step for Back.
    """
    context = get_script_run_ctx()
    if context is None:
        return
    with context.session_state.query_params() as parameters:
        for name, text in changes.items():
            if text is None:
                parameters.discard_param_no_forward_msg(name)
            else:
                parameters.set_with_no_forward_msg(name, text)


def send_query() -> None:
    """Tell the browser what the query is now: a step for Back where that is another one."""
    context = get_script_run_ctx()
    if context is not None:
        with context.session_state.query_params() as parameters:
            parameters._send_query_param_msg()


def registered_widgets() -> list[Any]:
    """Return the two sets by which Streamlit refuses a widget that comes twice in one run.

    One is of ids, the other of keys; ``snapshot()``, ``clear()`` and ``check_and_add(name)`` read
    and change them. There is none outside of a run.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return []
    return [context.shared.widget_ids_this_run, context.shared.widget_user_keys_this_run]


def request_rerun(session: str) -> None:
    """Run the script of a session again, as after a change of its file, if a page is connected."""
    app_session = get_instance().get_app_session(session)
    if app_session is not None:
        app_session.request_rerun(app_session._client_state)


def is_session_lost(session: str) -> bool:
    """Return whether Streamlit has given up a session, as it does where its messages pile up."""
    runtime = get_instance()
    ending = runtime.state in (RuntimeState.STOPPING, RuntimeState.STOPPED)
    return not ending and not is_session_active(session)


def expect_a_server() -> None:
    """Have Streamlit not look whether this is an interactive interpreter.

    It would before the first element, by the source of each function on the stack: 40 ms.
    """
    delta_generator._use_warning_has_been_displayed = True


def is_session_active(session: str) -> bool:
    """Return whether a page is connected to that session."""
    return get_instance().is_active_session(session)


def discard_pending_messages(session: str) -> None:
    """Drop what a session has not sent to its page yet."""
    app_session = get_instance().get_app_session(session)
    if app_session is not None:
        app_session.flush_browser_queue()


async def page_runs_without_error() -> bool:
    """Run the page's script in a session of its own, which is closed again."""
    ran, _ = await get_instance().does_script_run_without_error()
    return ran


def uploaded_file_sizes(session: str) -> list[int]:
    """Return the bytes of each file of a session that Streamlit keeps in memory."""
    storage = get_instance().uploaded_file_mgr.file_storage  # type: ignore[attr-defined]
    return [len(file.data) for file in list(storage.get(session, {}).values())]


def uploaded_bytes(file: str) -> bytes | None:
    """Return a file of this session by Streamlit's id for it; None where it is no longer there."""
    context = get_script_run_ctx()
    if context is None:
        return None
    records = context.uploaded_file_mgr.get_files(context.session_id, [file])
    return records[0].data if records else None


def forget_upload(file: str) -> None:
    """Free the memory of a file of this session before the session ends."""
    context = get_script_run_ctx()
    if context is not None:
        # Not part of Streamlit's protocol, but of the one manager that keeps files in memory.
        manager: Any = context.uploaded_file_mgr
        manager.remove_file(session_id=context.session_id, file_id=file)


def keep_uploads_in_memory() -> None:
    """Keep an upload in memory on its way, in no temporary file.

    Streamlit keeps a file in memory once it is there; on its way it would be in /tmp, which others'
    fill.
    """
    MultiPartParser.spool_max_size = sys.maxsize


def send_runs_whole() -> None:
    """Have all that a run put out be sent, though a fragment's run begins before it was.

    Streamlit drops what waits of the fragment, and says all the same that the run before ended
    well. So the page takes away what it has not heard of since, and builds it anew: the focus is
    gone, and keys go nowhere. Where a run of the whole page begins, it drops also what a browser
    asked for, as the address for a file: the file is never sent, and nobody is told.
    """

    def clear(
        queue: ForwardMsgQueue,
        retain_lifecycle_msgs: bool = False,
        fragment_ids_this_run: list[str] | None = None,
    ) -> None:
        if fragment_ids_this_run is None:
            kept = [each for each in queue._queue if each.WhichOneof("type") in _ANSWERS]
            _clear_queue(queue, retain_lifecycle_msgs)
            if retain_lifecycle_msgs:
                queue._queue += kept
        else:
            queue._delta_index_map = {}  # what comes now stands after what waits, not in its place

    ForwardMsgQueue.clear = clear  # type: ignore[assignment, method-assign]


def forget_ended_sessions() -> None:
    """End the sessions whose page went away too long ago to come back, and free their files.

    Streamlit does so when the next page comes or goes, which may be never.
    """
    manager: Any = get_instance()._session_mgr
    for _, ended in manager._session_storage._cache.expire():
        ended.session.shutdown()


def abort_connection(receive: Receive) -> None:
    """Close the connection that `receive` belongs to at once, whatever is still to be sent.

    ASGI has no word for it: closing waits until all is sent, which may be never. uvicorn's
    `receive` is a method of the connection.
    """
    receive.__self__.transport.abort()  # type: ignore[attr-defined]
