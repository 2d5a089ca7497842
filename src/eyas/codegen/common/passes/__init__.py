"""Passes on one dispatch, between a strategy's lowering and the target's own dialect."""
