"""What strategies of several targets have in common: what they match, and how their schedules are noted and read."""
