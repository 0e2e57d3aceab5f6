"""Draw a camera's frames as they come: each becomes one layer's answer, drawn and packed.

Knows no Streamlit and no socket: frames in, answers out. Who may send them and how they travel is
in `hookviz.ui.serving.live_route`; what the page does with the answers is the page's own.
"""
