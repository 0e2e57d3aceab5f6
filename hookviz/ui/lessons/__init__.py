"""Show lessons on the page: the list, a lesson's steps, its questions, and its live parts."""
