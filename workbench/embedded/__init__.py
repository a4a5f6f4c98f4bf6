"""Servers that ship with the workbench, for whoever has not configured real ones; see `servers.share_servers`."""
