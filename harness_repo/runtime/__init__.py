"""Runs a harness: request -> prompt -> agent loop with tools and hooks -> reply and trajectory."""
