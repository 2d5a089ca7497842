"""Tests compile what they test: nothing from the user's cache. Those of the cache have folders of their own."""

import os

os.environ["EYAS_CACHE"] = "off"
