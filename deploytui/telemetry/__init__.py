"""Readings of devices and memory, from a process of their own."""
