"""The files that this session has uploaded, by Streamlit's names for them."""

from streamlit.runtime.scriptrunner import get_script_run_ctx


def uploaded(file: str) -> bytes | None:
    """The bytes of a file of this session's; None where it is not there any more."""
    context = get_script_run_ctx()
    if context is None:
        return None
    records = context.uploaded_file_mgr.get_files(context.session_id, [file])
    return records[0].data if records else None


def forget(file: str) -> None:
    """Give the bytes of a file back before the session ends."""
    context = get_script_run_ctx()
    # Not part of Streamlit's protocol, but of the one manager that keeps files in memory.
    remove = getattr(context and context.uploaded_file_mgr, "remove_file", None)
    if context is not None and remove is not None:
        remove(session_id=context.session_id, file_id=file)
