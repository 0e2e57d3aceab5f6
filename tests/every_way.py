"""Whether all is tried with all: by night, with EVERY_WAY=1 (`make sweep`)."""

import os

EVERY_WAY = os.environ.get("EVERY_WAY") == "1"
