"""Show the page, as the only package that knows Streamlit.

`page` draws all of it, `state` has the visitor's choices, and each folder is a part of the screen.
The packages below compute.
"""
