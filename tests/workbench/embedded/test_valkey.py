from pathlib import Path

import redis

from workbench.embedded.valkey import valkey_server


def test_what_was_queued_is_there_after_a_restart(var: Path) -> None:
    server = valkey_server(var)
    path = str(server.spec.socket_folder / "valkey.sock")
    with server.in_use(), redis.Redis(unix_socket_path=path) as client:
        client.rpush("queue", "message")
    with server.in_use(), redis.Redis(unix_socket_path=path) as client:
        assert client.lrange("queue", 0, -1) == [b"message"]
