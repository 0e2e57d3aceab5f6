"""Show the explorer on the page: its client, its menus, atlases, and a pinned view."""
