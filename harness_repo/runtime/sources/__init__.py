"""Where tool results come from when the case does not hold them: HTTP services and MCP servers."""
