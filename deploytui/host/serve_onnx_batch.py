"""The batching engine of ONNX Runtime GenAI: requests are handed to its thread, and their tokens read from it."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Dict, Generator, List, NamedTuple

if TYPE_CHECKING:
    from deploytui.host import serve_backend as contract

EVENTS = 1024


class Job(NamedTuple):
    """One request on its way: what it gives is put into `out`, None at its end."""

    ids: List[int]
    params: contract.Params
    out: queue.SimpleQueue[Any]
    left: threading.Event


class Batches:
    """The engine and the thread that owns it: it takes calls from no other."""

    def __init__(self, og: Any, model: Any, end: int) -> None:
        self.og, self.model, self.end = og, model, end
        self.engine: Any = None
        self.events: Any = None
        self.largest = 0
        self.inbox: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.running: Dict[Any, Job] = {}
        made: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self.live, args=(made,), daemon=True).start()
        error = made.get()
        if error is not None:
            raise error

    def live(self, made: queue.SimpleQueue[Any]) -> None:
        """Make the engine, tell how that went, and drive it."""
        try:
            self.engine = self.og.Engine(self.model)
            self.largest = int(self.engine.get_capabilities().configured_max_batch_size)
            self.events = self.engine.create_event_buffer(EVENTS)
        except Exception as error:  # noqa: BLE001 - raised where the engine is wanted
            made.put(error)
            return
        made.put(None)
        self.drive()

    def tokens(self, ids: List[int], params: contract.Params) -> Generator[int, None, None]:
        """Sampled ids of one request; what the engine raises for it is raised here."""
        job = Job(ids, params, queue.SimpleQueue(), threading.Event())
        self.inbox.put(job)
        try:
            while True:
                got = job.out.get()
                if got is None:
                    return
                if isinstance(got, BaseException):
                    raise got
                yield got
        finally:
            job.left.set()

    def drive(self) -> None:
        """Take requests in and step, as long as the process lives."""
        while True:
            self.take_in()
            try:
                for event in self.engine.run(self.events):
                    self.pass_on(event)
            except Exception as error:  # noqa: BLE001 - whatever it raises belongs to those who are in the batch
                self.give_up(error)

    def take_in(self) -> None:
        """Begin what waits; without anything to do, wait for it."""
        while not self.inbox.empty() or not self.running:
            job = self.inbox.get()
            try:
                self.begin(job)
            except Exception as error:  # noqa: BLE001
                job.out.put(error)

    def begin(self, job: Job) -> None:
        """Hand one request to the engine."""
        limit = self.og.RequestOptions()
        limit.set_max_session_tokens(len(job.ids) + job.params.max_tokens)
        request = self.engine.create_request(options=limit)
        request.begin_turn(job.ids, self.turn(request, job.params))
        self.running[request] = job

    def turn(self, request: Any, params: contract.Params) -> Any:
        """How the answer is generated, in the engine's words."""
        turn = self.og.TurnOptions(request)
        turn.set_max_generated_tokens(params.max_tokens)
        turn.set_min_generated_tokens(params.max_tokens if params.ignore_eos else 0)
        turn.set_do_sample(params.temperature > 0)
        turn.set_temperature(params.temperature or 1.0)
        turn.set_top_p(params.top_p)
        turn.set_top_k(params.top_k or 0)
        turn.set_repetition_penalty(params.repetition_penalty or 1.0)
        if params.seed is not None:
            turn.set_seed(params.seed % 2**31)
        return turn

    def pass_on(self, event: Any) -> None:
        """Give a token to whom it belongs, and let go of a request that is done or whose reader left."""
        flags, job = self.og.EngineEventFlags, self.running.get(event.request)
        if job is None:
            return
        kinds = int(event.flags)
        if kinds & int(flags.TOKEN):
            job.out.put(int(event.token))
        elif kinds & int(flags.TURN_FINISHED) and event.finish_reason == self.og.FinishReason.EOS:
            # The sampled token that ends an answer is not handed out, and counts like any other.
            job.out.put(self.end)
        if kinds & int(flags.FAILED):
            job.out.put(RuntimeError("the engine failed this request: {}".format(event.error_code)))
        if kinds & (int(flags.FAILED) | int(flags.TURN_FINISHED)) or job.left.is_set():
            self.let_go(event)
            job.out.put(None)

    def let_go(self, event: Any) -> None:
        """Take a request out of the engine."""
        self.running.pop(event.request, None)
        if not int(event.flags) & int(self.og.EngineEventFlags.TURN_FINISHED):
            event.request.cancel_turn(event.turn_id)
        event.request.close()

    def give_up(self, error: BaseException) -> None:
        """End every running request with an error."""
        for request, job in list(self.running.items()):
            job.out.put(error)
            request.close()
        self.running.clear()
