"""What the loop asks of a model: the diagnosis of a cluster and the draft of an edit, as requests and typed answers.

Plain Python and pydantic; nothing here talks to a model but `structured.ask`, through the ChatModel protocol.
"""
