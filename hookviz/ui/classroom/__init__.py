"""The class on the page: begun or joined by a menu, and a bar for its teacher and for who follows.

What a class is stands in `hookviz.classroom`; what goes over the wire in
`hookviz.ui.serving.class_route`.
"""
