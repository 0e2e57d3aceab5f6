"""Draw the page: the script that Streamlit runs for every interaction."""

from hookviz.serving import capacity
from hookviz.ui import page

with capacity.garbage_collector().at_work():
    page.show()
