"""Show the class on the page: a menu to begin or join it, a bar for its teacher and followers.

What a class is stands in `hookviz.classroom`; what goes over the wire in
`hookviz.ui.serving.class_route`.
"""
