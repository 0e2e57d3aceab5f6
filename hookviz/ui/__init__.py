"""Show the page, as the only package that knows Streamlit.

What it shows is computed in the packages below. `page` puts it together, `state` is what a person
chose; each folder is a part of the screen.
"""
