"""What a host knows while it serves, and what its pages tell of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from deploytui.host import serve_backend as contract
    from deploytui.host import serve_queue as queue
else:
    import serve_backend as contract
    import serve_queue as queue


class Served:
    """What the process knows while it serves; `backend` is None while it loads."""

    def __init__(self, alias: str, api_key: Optional[str], most_waiting: int) -> None:
        self.alias, self.api_key, self.most_waiting = alias, api_key, most_waiting
        self.backend: Optional[contract.Backend] = None
        self.queue = queue.Queue(0, 0)
        self.context: Optional[int] = None

    def loaded(self, backend: contract.Backend, context: Optional[int]) -> None:
        """Serve from now on."""
        self.queue = queue.Queue(backend.slots, self.most_waiting)
        self.context, self.backend = context, backend

    def ready(self) -> contract.Backend:
        """The backend; RefusalError while it loads."""
        if self.backend is None:
            raise contract.RefusalError(503, "the model is still loading")
        return self.backend

    def model(self) -> Dict[str, Any]:
        """Its row in the list of models."""
        return {"id": self.alias, "object": "model", "owned_by": self.ready().name, "max_model_len": self.context}

    def props(self) -> Dict[str, Any]:
        """How it runs."""
        backend = self.ready()
        versions = backend.versions()
        return {
            "engine": backend.name,
            "version": next(iter(versions.values()), None),
            "versions": versions,
            "batching": backend.batching,
            "slots": backend.slots,
            "max_waiting": self.most_waiting,
            "context_length": self.context,
            "model_context_length": backend.context_length,
            **backend.props(),
        }

    def page(self, path: str) -> Any:
        """The answer to a GET: JSON, or text for a scrape."""
        if path == "/health":
            self.ready()
            return {"status": "ok"}
        if path == "/v1/models":
            return {"object": "list", "data": [self.model()]}
        if path == "/metrics":
            return self.queue.metrics()
        return self.props() if path == "/props" else {**dict.fromkeys(contract.MEMORY), **self.ready().memory()}
