"""Show the class on the page: a menu to start or join it, a bar for its teacher and followers.

`hookviz.classroom` has the classes, and `hookviz.ui.serving.class_route` their messages.
"""
