"""Clients of the paced server: each connection's requests, one after the other."""

from __future__ import annotations

import os
import selectors
import socket
import sys
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from deploytui.host import paced_http as http
    from deploytui.host.paced_server import Server
    from deploytui.host.paced_streams import Stream
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import paced_http as http
    from paced_streams import Stream


class Connection:
    """One client: its requests one after the other, a stream at a time."""

    def __init__(self, server: Server, sock: socket.socket) -> None:
        self._server, self._sock = server, sock
        self._wire = server.wire(sock, self._wants_room)
        self._buffer = bytearray()
        self._stream: Optional[Stream] = None
        self._closing = False
        server.selector.register(sock, selectors.EVENT_READ, self.ready)

    def ready(self, events: int) -> None:
        """The socket has something, or room."""
        try:
            if events & selectors.EVENT_WRITE:
                self._wire.drain()
            if events & selectors.EVENT_READ:
                self._read()
        except OSError:
            self._close()
            return
        self._close_when_said()

    def _over(self) -> None:
        """The stream is over; what waits behind it is next."""
        self._stream = None
        self._serve()
        self._close_when_said()

    def _read(self) -> None:
        data = self._wire.receive()
        if data is None:
            self._close()
        elif data:
            self._buffer += data
            self._serve()

    def _serve(self) -> None:
        """Answer what is complete; a request behind one that streams waits for its turn."""
        while self._stream is None and self._buffer and not self._closing:
            try:
                request = http.take_request(self._buffer)
                if request is None:
                    return
                self._closing = request.headers.get("connection", "").lower() == "close"
                self._answer(request)
            except http.RefusalError as error:
                self._closing = self._closing or error.fatal
                self._wire.say(http.refused(error))

    def _answer(self, request: http.Request) -> None:
        if request.method == "GET":
            told = self._server.page(request.path)
            if told is None:
                raise http.RefusalError(404, f"nothing at {request.path}")
            self._wire.say(told)
            return
        ask = http.understood(request, self._server.said.tokens)
        phrases = self._server.phrases[ask.chat]
        self._wire.blocked = bool(self._wire.pending)
        self._stream = Stream(ask.id, self._wire, phrases.chunks(ask), phrases.tail(ask), self._over)
        self._server.pacer.begin(self._stream)

    def _wants_room(self, wanted: bool) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        self._server.selector.modify(self._sock, events, self.ready)

    def _close_when_said(self) -> None:
        if self._closing and self._stream is None and not self._wire.pending:
            self._close()

    def _close(self) -> None:
        """Let go; a stream under way is cut when its next token is due."""
        if self._sock.fileno() >= 0:
            self._server.selector.unregister(self._sock)
            self._wire.let_go()
