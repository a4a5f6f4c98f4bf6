"""What may be under way at once: places in this process, and the share of them that all processes agree on."""
