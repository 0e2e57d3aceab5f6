"""The explorer in a notebook: a widget of the kernel's, and when a capture shows itself as one."""
