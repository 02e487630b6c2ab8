"""Checks of truth: how far a lede supports a headline."""
