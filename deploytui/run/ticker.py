"""Once a second: what the devices, the engine's memory and the load did, as rollups in the journal."""

import sys

import anyio
import msgspec
from anyio.abc import Process

from deploytui.load.orders import Snapshot
from deploytui.record.events import NodeRollup, Note, Rollup
from deploytui.record.facts import MemoryUse
from deploytui.run.children import child, lines, marked, tell
from deploytui.run.rates import Rates, rates, tokens_per_chunk
from deploytui.run.recorder import Recorder, now_ns
from deploytui.session.folder import SessionFolder
from deploytui.telemetry.messages import Sample, TelemetryOrder, Watch, sample_decoder
from deploytui.telemetry.rollup import NodeWindow, RollupWindow, device_bytes, worst_above
from deploytui.units import NS

SAMPLER = (sys.executable, "-m", "deploytui.telemetry.sampler")
TICK_S = 1.0
SAMPLE_S = 0.25
GRACE_S = 2.0
RATE_S = 0.5
"""Shortest stretch a token rate is told of while a load runs: chunks come in bursts [s]."""
FRESH_S = 5.0
"""How long to wait for a reading of the GPUs: the driver may take seconds to open [s]."""
LEFT_BYTES = 64 << 20
"""What may be in use on a GPU above the reading before launch and still be called given back."""


class Ticker:
    """Hears the telemetry process and the load worker, and says a rollup a second while a candidate runs."""

    def __init__(self, recorder: Recorder, folder: SessionFolder) -> None:
        self._recorder, self._folder = recorder, folder
        self._node = NodeWindow()
        self._window = RollupWindow()
        self._newest: Sample | None = None
        self._sampled = anyio.Event()
        self._candidate: str | None = None
        self._snapshots: list[Snapshot] = []
        self._per_chunk: float | None = None
        self._load_memory: tuple[int | None, int | None] = (None, None)
        self._telemetry: Process | None = None
        self._told = False
        """Whether a rate of the present load was said."""
        self._ticked_ns = self._said_ns = now_ns()

    async def run(self) -> None:
        """Until cancelled; a telemetry process that ends is noted, and measuring goes on without it."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._sample)
            while True:
                await anyio.sleep(TICK_S)
                self._tick()

    async def _sample(self) -> None:
        why = "See telemetry.log."
        try:
            await self._listen()
        except OSError as error:
            why = str(error)
        self._telemetry = None
        self._sampled.set()
        text = f"The telemetry process ended: memory and device figures are missing from here on. {why}"
        self._recorder.say(Note(at_ns=now_ns(), level="warning", text=text))

    async def _listen(self) -> None:
        errors = self._folder.path / "telemetry.log"
        async with child(SAMPLER, env=marked(self._folder.id), errors=errors, grace_s=GRACE_S) as process:
            self._telemetry = process
            await tell(process, msgspec.json.encode(TelemetryOrder(interval_s=SAMPLE_S)))
            async for line in lines(process):
                self._hear_sample(sample_decoder.decode(line))

    def _hear_sample(self, sample: Sample) -> None:
        self._newest = sample
        self._sampled.set()
        self._sampled = anyio.Event()
        self._node.add(sample)
        if self._candidate is not None:
            self._window.add(sample)

    async def watch(self, candidate: str, gpu_uuids: tuple[str, ...]) -> None:
        """From now on memory is this candidate's; the GPUs' present use is what it is counted above."""
        if gpu_uuids:
            await self._fresh(gpu_uuids)
        before = device_bytes(self._newest, gpu_uuids) if self._newest else dict.fromkeys(gpu_uuids)
        self._candidate, self._window = candidate, RollupWindow(baseline=before)
        self._load_memory, self._per_chunk = (None, None), None

    async def watch_process(self, pid: int) -> None:
        """Sum the memory of this process and its descendants, too."""
        self._window.roots = (pid,)
        if self._telemetry is not None:
            await tell(self._telemetry, msgspec.json.encode(Watch(pids=(pid,))))

    async def loaded(self) -> None:
        """The model is loaded: what is in use now is the load's memory."""
        if self._window.baseline or self._window.roots:  # of an endpoint elsewhere nothing is sampled
            await self._fresh(tuple(self._window.baseline))
        self._load_memory = (self._window.last_gpu_bytes, self._window.last_host_bytes)

    def memory(self) -> MemoryUse:
        """The candidate's memory so far."""
        gpu, host = self._window.peak_gpu_bytes, self._window.peak_host_bytes
        load_gpu, load_host = self._load_memory
        source = "process tree rss" if host is not None else "none"
        if gpu is not None:
            source = "system-unified above pre-launch" if self._unified() else "nvml device above pre-launch"
        return MemoryUse(
            load_gpu_bytes=load_gpu,
            peak_gpu_bytes=gpu,
            load_host_bytes=load_host,
            peak_host_bytes=host,
            source=source,
        )

    def _unified(self) -> bool:
        """Whether the candidate's GPUs share the host's memory."""
        devices = self._newest.devices if self._newest else ()
        return any(
            device.uuid in self._window.baseline and device.memory_source == "system-unified" for device in devices
        )

    async def unwatch(self) -> int | None:
        """The candidate is gone: bytes its GPUs still hold above the reading before launch; None when not told.

        A driver gives memory back a little after the process that held it has ended, so it gets a moment.
        """
        left = None
        with anyio.move_on_after(FRESH_S if self._window.baseline else 0):
            while True:
                await self._fresh(tuple(self._window.baseline))
                left = worst_above(self._newest, self._window.baseline) if self._newest else None
                if left is None or left <= LEFT_BYTES:
                    break
        self._candidate, self._window = None, RollupWindow()
        return left

    async def _fresh(self, gpu_uuids: tuple[str, ...]) -> None:
        """Wait a little for a sample taken after now, one that tells of these GPUs; at once without telemetry."""
        after = now_ns()
        limit_s = FRESH_S if gpu_uuids else 4 * SAMPLE_S
        with anyio.move_on_after(limit_s if self._telemetry else 0):
            while not self._tells(gpu_uuids, after):
                await self._sampled.wait()

    def _tells(self, gpu_uuids: tuple[str, ...], after_ns: int) -> bool:
        sample = self._newest
        if sample is None or sample.at_ns < after_ns:
            return False
        return all(used is not None for used in device_bytes(sample, gpu_uuids).values())

    def begin_load(self) -> None:
        """A load begins; snapshots of another one are not mixed with its own."""
        self._snapshots, self._told = [], False

    def hear(self, snapshot: Snapshot) -> None:
        """A load worker's newest figures."""
        self._snapshots.append(snapshot)
        self._per_chunk = tokens_per_chunk(snapshot, self._per_chunk)

    def end_load(self) -> None:
        """The load is over; its last stretch is said before the next one begins, and a short load as a whole."""
        if self._candidate is not None and len(self._snapshots) > 1 and (self._stretch_s() >= RATE_S or not self._told):
            self._say_rollup(now_ns(), shortest_s=0.0)
        self._snapshots = []

    def _stretch_s(self) -> float:
        """How long the kept snapshots reach [s]; 0 of fewer than two."""
        return (self._snapshots[-1].at_ns - self._snapshots[0].at_ns) * NS if self._snapshots else 0.0

    def _tick(self) -> None:
        at_ns = now_ns()
        if (node := self._node.close()) is not None:
            seconds = (at_ns - self._ticked_ns) * NS
            self._recorder.say(NodeRollup(at_ns=at_ns, interval_s=seconds, **msgspec.structs.asdict(node)))
        if self._candidate is not None:
            self._say_rollup(at_ns)
        self._ticked_ns = at_ns

    def _say_rollup(self, at_ns: int, shortest_s: float = RATE_S) -> None:
        assert self._candidate is not None
        parts = self._window.close()
        newest = self._snapshots[-1] if self._snapshots else None
        is_enough = self._stretch_s() >= shortest_s
        told: Rates = rates(self._snapshots, self._per_chunk) if is_enough else Rates()
        self._recorder.say(
            Rollup(
                at_ns=at_ns,
                candidate=self._candidate,
                interval_s=(at_ns - self._said_ns) * NS,
                output_tok_s=told.output_tok_s,
                in_flight=newest.in_flight if newest else None,
                gpu_bytes=parts.gpu_bytes,
                host_bytes=parts.host_bytes,
                done=newest.done if newest else None,
                failed=newest.failed if newest else None,
                total=newest.total if newest else None,
                ttft_s=told.ttft_s,
                tpot_s=told.tpot_s,
            )
        )
        self._said_ns = at_ns
        if is_enough:
            self._told = self._told or told.output_tok_s is not None
            self._snapshots = self._snapshots[-1:]
