"""Show Streamlit components in plain JavaScript, each in files of one name.

A component draws and sends clicks; it computes nothing that Python's tests do not see.
"""
