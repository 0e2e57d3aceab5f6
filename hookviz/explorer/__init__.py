"""What the explorer shows of a network and an image, as data that any front end can draw.

Pure functions: what was recorded goes in, and a dictionary for JSON comes out, with sentences for
people and small pictures as URLs of their own bytes. They know no Streamlit, no HTTP and no HTML.
What draws them, and what a click does, belongs to `hookviz.ui`. Imports explaining, drawing and
what lies below.
"""
