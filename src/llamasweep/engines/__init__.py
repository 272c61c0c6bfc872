"""How to ask a program for a number: describe the call, read the answer. Nothing here starts anything."""
