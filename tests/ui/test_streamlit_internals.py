"""The contract with the installed Streamlit: all that `streamlit_internals` leans on is there.

`LAST_GREEN` is the version on which this file was last green, and which pyproject.toml pins. Once
it and the other tests of `tests/ui` are green on a newer one, both may name that.
"""

import ast
import inspect
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import streamlit
from packaging.requirements import Requirement
from starlette.types import Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from hookviz.ui import streamlit_internals
from tests.ui.serving.asgi import served

LAST_GREEN = "1.67.0"

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "hookviz"
SEAM = PACKAGE / "ui" / "streamlit_internals.py"
PUBLIC = {
    "streamlit",
    "streamlit.delta_generator",
    "streamlit.errors",
    "streamlit.runtime.uploaded_file_manager",  # of UploadedFile, as its documentation names it
}

REQUEST_FIELDS = {
    "cached_message_hashes",
    "fragment_id",
    "is_auto_rerun",
    "is_history_navigation",
    "page_script_hash",
    "query_string",
    "widget_states",
}
FOR_VISITORS = {"app_heartbeat", "backend_operation_request", "file_urls_request"} | {
    "rerun_script",
    "stop_script",
}
FOR_DEVELOPERS = {"clear_cache", "load_git_info", "set_run_on_save"} | {
    "debug_disconnect_websocket",
    "debug_shutdown_runtime",
}
OPERATIONS = {"dataframe_chunk", "deferred_file", "dismiss_skills_nudge", "install_skills"}
CHOICES = {"arrow_value", "bool_value", "bytes_value", "double_array_value", "double_value"} | {
    "file_uploader_state_value",
    "int_array_value",
    "int_value",
    "json_value",
    "string_array_value",
    "string_value",
}


def changed(what: str) -> str:
    return (
        f"Streamlit {streamlit.__version__} is not as {LAST_GREEN} was: {what}. "
        "hookviz/ui/streamlit_internals.py leans on it."
    )


@cache
def frontend() -> str:
    folder = Path(streamlit.__file__).parent / "static" / "static" / "js"
    return "\n".join(file.read_text("utf-8") for file in sorted(folder.glob("*.js")))


@cache
def our_sources() -> dict[str, str]:
    """What may find an element of Streamlit's page, by its path in the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8")
        for path in (PACKAGE / "ui").rglob("*")
        if path.suffix in (".css", ".js", ".py") and path != SEAM
    }


def private_imports(path: Path) -> list[tuple[str, str]]:
    return [
        (node.module or "", alias.name)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] in ("streamlit", "uvicorn")
        for alias in node.names
        if node.module not in PUBLIC or alias.name == "config"
    ]


def test_the_pin_is_the_version_of_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        Requirement(line) for extra in project["optional-dependencies"].values() for line in extra
    ]
    pins = {str(each.specifier) for each in wanted if each.name == "streamlit"}
    assert pins == {f"~={LAST_GREEN}"}


def test_no_other_module_leans_on_private_parts() -> None:
    guilty = {path: private_imports(path) for path in PACKAGE.rglob("*.py") if path != SEAM}
    assert {str(path): names for path, names in guilty.items() if names} == {}
    private = re.compile(r"_(?!_|asdict|replace)|__self__")
    for path in set((PACKAGE / "ui").rglob("*.py")) - {SEAM}:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and private.match(node.attr):
                assert isinstance(node.value, ast.Name), (path, node.lineno)
                assert node.value.id in ("self", "cls"), (path, node.lineno)


@pytest.mark.parametrize(("module", "name"), private_imports(SEAM))
def test_what_is_imported_is_there(module: str, name: str) -> None:
    try:
        is_there = hasattr(import_module(module), name)
    except ImportError:
        is_there = False
    assert is_there, changed(f"{module} has no {name}")


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        ("runtime.Runtime", "get_app_session is_active_session state uploaded_file_mgr"),
        ("runtime.Runtime", "does_script_run_without_error"),
        ("app_session.AppSession", "_client_state flush_browser_queue request_rerun"),
        ("forward_msg_queue.ForwardMsgQueue", "_delta_index_map"),
        (
            "memory_uploaded_file_manager.MemoryUploadedFileManager",
            "file_storage get_files remove_file",
        ),
        (
            "scriptrunner.ScriptRunContext",
            "has_script_started is_history_navigation session_id shared uploaded_file_mgr",
        ),
        (
            "scriptrunner_utils.shared_run_state.SharedRunState",
            "widget_ids_this_run widget_user_keys_this_run",
        ),
        ("scriptrunner_utils.thread_safe_set.ThreadSafeSet", "check_and_add clear snapshot"),
    ],
)
def test_what_is_used_of_an_object_is_there(owner: str, names: str) -> None:
    """Defined by its class, declared as a field, or set on itself."""
    module, _, kind = f"streamlit.runtime.{owner}".rpartition(".")
    try:
        found = getattr(import_module(module), kind, None)
    except ImportError:
        found = None
    assert found is not None, changed(f"there is no {module}.{kind}")
    source, fields = inspect.getsource(found), inspect.get_annotations(found)
    for name in names.split():
        is_set = re.search(rf"\bself\.{name}\b *[:=]", source)
        is_there = hasattr(found, name) or name in fields or is_set
        assert is_there, changed(f"{kind} has no {name}")


def test_messages_have_the_fields_that_are_read_and_no_kind_that_nobody_has_looked_at() -> None:
    """A new kind of message would be refused, and a new kind of click taken for a choice."""
    from hookviz.ui.serving import connections, messages  # noqa: PLC0415 - may fail to import
    from hookviz.ui.streamlit_internals import BackMsg, ForwardMsg, WidgetState  # noqa: PLC0415

    def kinds(message: object, oneof: str) -> set[str]:
        return {str(field.name) for field in message.oneofs_by_name[oneof].fields}  # type: ignore[attr-defined]

    fields = BackMsg.DESCRIPTOR.fields_by_name
    missing = REQUEST_FIELDS - {one.name for one in fields["rerun_script"].message_type.fields}
    assert not missing, changed(f"a request to run the page has no {', '.join(missing)}")
    missing = {"new_session", "page_info_changed", "script_finished"} - kinds(
        ForwardMsg.DESCRIPTOR, "type"
    )
    assert not missing, changed(f"the page is told no {', '.join(missing)}")
    new = kinds(BackMsg.DESCRIPTOR, "type") ^ (FOR_VISITORS | FOR_DEVELOPERS)
    assert not new, changed(f"the page's messages differ by {', '.join(new)}")
    operations = kinds(fields["backend_operation_request"].message_type, "payload")
    new = operations ^ OPERATIONS
    assert not new, changed(f"the page's operations differ by {', '.join(new)}")
    new = kinds(WidgetState.DESCRIPTOR, "value") ^ (messages._TRIGGERS | CHOICES)
    assert not new, changed(f"what a widget holds differs by {', '.join(new)}")
    assert connections._MESSAGES | {"backend_operation_request"} == FOR_VISITORS
    assert connections._OPERATIONS < OPERATIONS


def test_what_a_run_put_out_is_sent_though_another_run_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Streamlit's own queue drops the fragment's element of a run that it says ended well.

    And the address for a file, so that what a visitor chose is never sent.
    """
    monkeypatch.setattr(ForwardMsgQueue, "clear", streamlit_internals._clear_queue)
    waiting = [ForwardMsg() for _ in range(3)]
    for text, message in zip(("before", "newer"), waiting[::2], strict=True):
        message.metadata.delta_path.extend([0, 4, 0])
        message.delta.fragment_id = "live"
        message.delta.new_element.text.body = text
    waiting[1].script_finished = ForwardMsg.ScriptFinishedStatus.FINISHED_SUCCESSFULLY
    address, element = ForwardMsg(), ForwardMsg()
    address.file_urls_response.response_id = "asked"
    element.delta.new_element.text.body = "of the run before"

    def sent(
        before: list[ForwardMsg], part: list[str] | None, *later: ForwardMsg
    ) -> list[ForwardMsg]:
        queue = ForwardMsgQueue()
        for message in before:
            queue.enqueue(message)
        queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=part)
        for message in later:
            queue.enqueue(message)
        found = queue.flush()
        assert queue.is_empty(), "what was sent is not sent again"
        return found

    of_part = sent(waiting[:2], ["live"], waiting[2])
    assert of_part == waiting[1:], changed("nothing is dropped any more: send_runs_whole can go")
    assert not sent([element, address], None), changed("it keeps the address by itself")
    streamlit_internals.send_runs_whole()
    assert sent(waiting[:2], ["live"], waiting[2]) == waiting
    assert sent([element, address], None) == [address]


def test_the_elements_that_style_and_scripts_find_are_listed_and_are_in_the_page() -> None:
    from hookviz.ui.streamlit_internals import SCRIPT_STATE, TEST_IDS  # noqa: PLC0415

    used = {name for text in our_sources().values() for name in re.findall(r"\bst[A-Z]\w*", text)}
    assert used == TEST_IDS
    attribute, running = SCRIPT_STATE
    assert {
        name
        for text in our_sources().values()
        for name in re.findall(r"data-(?:test-|st-|stale|baseweb)[\w-]*", text)
    } == {attribute}
    names = {f"`{name}`" for name in (*TEST_IDS, running)} | {f'"{attribute}":'}
    gone = {
        name.strip('"`:')
        for name in names
        if not any(name.replace("`", quote) in frontend() for quote in "`\"'")
    }
    assert not gone, changed(f"its page has no {', '.join(sorted(gone))}")


def test_the_server_has_the_paths_by_which_it_is_known() -> None:
    from hookviz.ui.streamlit_internals import PAGE_SOCKET, UPLOAD_PATH  # noqa: PLC0415

    folder = Path(streamlit.__file__).parent / "web" / "server" / "starlette"
    server = "\n".join(file.read_text("utf-8") for file in folder.glob("*.py"))
    for path in (PAGE_SOCKET, UPLOAD_PATH):
        assert path.removeprefix("/") in server, changed(f"its server has no {path}")


def test_a_connection_is_aborted_with_what_waits_in_it() -> None:
    """Uvicorn's part: the protocol that it takes by itself has a transport."""
    from hookviz.ui.streamlit_internals import abort_connection  # noqa: PLC0415

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        abort_connection(receive)

    with served(app) as port, connect(f"ws://127.0.0.1:{port}") as line:
        with pytest.raises(ConnectionClosedError) as ended:
            line.recv(timeout=10)
        assert ended.value.rcvd is None, "it was closed in good order, which may take for ever"


def test_nobody_looks_for_an_interactive_interpreter_in_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from streamlit import delta_generator, env_util  # noqa: PLC0415

    from hookviz.ui.streamlit_internals import expect_a_server  # noqa: PLC0415

    looks = changed("it looks at the stack before the first element")
    monkeypatch.setattr(env_util, "is_repl", lambda: pytest.fail(looks))
    monkeypatch.setattr(delta_generator, "_use_warning_has_been_displayed", False)
    expect_a_server()
    delta_generator._maybe_print_use_warning()
