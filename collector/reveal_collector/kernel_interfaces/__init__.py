"""Thin wrappers of kernel interfaces: perf events, netlink, inotify, scheduling."""
