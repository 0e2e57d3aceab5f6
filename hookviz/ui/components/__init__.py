"""Show Streamlit components in plain JavaScript, each in files of one name.

A component draws and tells of clicks; it computes nothing that a test could not see.
"""
