"""Running totals of a load, for snapshots and the report."""

from collections.abc import Iterable
from dataclasses import dataclass

from deploytui.definitions import tpot, ttft
from deploytui.load.answer import Answer
from deploytui.load.orders import Snapshot
from deploytui.record.trace import CUT_OFF, RequestRecord


@dataclass(slots=True)
class Tally:
    """Totals over finished requests; latencies are of successful ones only."""

    total: int
    done: int = 0
    ok: int = 0
    failed: int = 0
    reads: int = 0
    multi_chunk_reads: int = 0
    chunks: int = 0
    output_tokens: int = 0
    counted_chunks: int = 0
    ttft_sum_s: float = 0.0
    ttft_n: int = 0
    tpot_sum_s: float = 0.0
    tpot_n: int = 0

    def add(self, record: RequestRecord) -> None:
        """Count a finished request."""
        self.done += 1
        self.chunks += record.chunks
        self.reads += record.reads
        self.multi_chunk_reads += record.multi_chunk_reads
        if not record.ok:
            self.failed += record.error_kind != CUT_OFF
            return
        self.ok += 1
        if record.output_tokens is not None:
            self.output_tokens += record.output_tokens
            self.counted_chunks += record.chunks
        first = ttft(record.sent_ns, record.first_token_ns)
        if first is not None:
            self.ttft_sum_s, self.ttft_n = self.ttft_sum_s + first, self.ttft_n + 1
        each = tpot(record.first_token_ns, record.last_token_ns, record.output_tokens)
        if each is not None:
            self.tpot_sum_s, self.tpot_n = self.tpot_sum_s + each, self.tpot_n + 1

    def snapshot(self, at_ns: int, under_way: Iterable[Answer]) -> Snapshot:
        """Where the load is, running requests included."""
        running = [len(answer.stamps) for answer in under_way]
        return Snapshot(
            at_ns=at_ns,
            total=self.total,
            done=self.done,
            failed=self.failed,
            in_flight=len(running),
            chunks=self.chunks + sum(running),
            output_tokens=self.output_tokens,
            finished_chunks=self.counted_chunks,
            ttft_sum_s=self.ttft_sum_s,
            ttft_n=self.ttft_n,
            tpot_sum_s=self.tpot_sum_s,
            tpot_n=self.tpot_n,
        )
