"""The read side: what pages show, in a fixed number of queries. Nothing here writes, but `loop.figures` keeps sums."""
