"""The files of a harness: how they are read, and what is said about those that cannot be."""
