"""Hold classes: a teacher's view that pupils' screens follow, and questions to all of them.

Here belong the classes of one process, their codes and bounds, what of a view is shared, questions
and votes; not the connections (`hookviz.ui.serving.class_route`) nor the screen
(`hookviz.ui.classroom`). All of it is in memory, and gone when a class ends.
"""
