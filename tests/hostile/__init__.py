"""Hostile clients, disks and upstreams against real processes on this machine, bounded in count and time."""
