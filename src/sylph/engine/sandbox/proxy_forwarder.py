"""Listens inside of a sandbox for whoever wants a proxy, and passes it on to the socket that leads out.

A script that needs nothing but the standard library: the path of the socket, the port, then the command it becomes.
"""

import contextlib
import os
import socket
import sys
import threading

CHUNK = 65536


def copy_stream(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def serve_client(client: socket.socket, path: str) -> None:
    out = socket.socket(socket.AF_UNIX)
    with client, out:
        try:
            out.connect(path)
        except OSError:
            with contextlib.suppress(OSError):
                client.sendall(
                    b"HTTP/1.1 502 Bad Gateway\r\n\r\nSylph has ended, and with it the way to the network.\n"
                )
            return
        back = threading.Thread(target=copy_stream, args=(out, client), daemon=True)
        back.start()
        copy_stream(client, out)
        back.join()


def main() -> None:
    path, port, *command = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=128)
    if os.fork():
        listener.close()
        os.execvp(command[0], command)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve_client, args=(client, path), daemon=True).start()


if __name__ == "__main__":
    main()
