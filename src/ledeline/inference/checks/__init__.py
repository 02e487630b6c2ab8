"""Checks of truth: is a headline supported by its lede?"""
