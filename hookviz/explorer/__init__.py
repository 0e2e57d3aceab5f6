"""What the explorer shows of a network and an image, as data that any front end can draw.

Pure functions: what was recorded goes in, and a dictionary for JSON comes out, with sentences for
people and small pictures as URLs of their own bytes. They know no Streamlit, no HTTP and no HTML.
What draws them in a browser, and what a click does, is the JavaScript in `client`, which knows as
little of what is around it; how the app mounts and answers it belongs to `hookviz.ui`. Imports
explaining, drawing and what lies below.
"""
