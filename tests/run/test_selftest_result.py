"""What a self-test comes to: verdicts that blame nobody wrongly, and words that say them."""

from deploytui.record.measured import ToolError
from deploytui.run.selftest_result import Row, SelfTest, ServerSaid, good_for, measured_row, sentence, unmeasured_row
from deploytui.run.selftest_text import selftest_text
from deploytui.run.selftest_truth import Joined

PLENTY = 200


def row(
    *,
    streams: int = 64,
    error_us: float = 5.0,
    gaps: int = PLENTY,
    pace: float = 1.0,
    off_us: float = 100.0,
    failed: int = 0,
    left_out: int = 0,
    tool: ToolError | None = None,
    workers: int = 1,
) -> Row:
    joined = Joined(
        requests=streams,
        tokens=gaps + streams,
        left_out=left_out,
        ttft_error_us=[error_us] * streams,
        itl_error_us=[error_us] * gaps,
        pace=pace,
        server_off_us=[off_us] * gaps,
    )
    return measured_row(
        streams=streams,
        workers=workers,
        itl_ms=20.0,
        failed=failed,
        joined=joined,
        tool=tool or ToolError(clock="kernel"),
        cpu_s=0.5,
        server=ServerSaid(late_us_p99=90.0, cpu_s=1.0),
    )


def result(*rows: Row) -> SelfTest:
    return SelfTest(
        version="0",
        itl_ms=20.0,
        tokens=128,
        tls=False,
        workers=1,
        pinned=True,
        cores=2,
        good_for=good_for(rows),
        sentence=sentence(rows, itl_ms=20.0),
        rows=rows,
    )


def test_small_errors_are_good() -> None:
    one = row()
    assert (one.verdict, one.why, one.itl_error_us_p99) == ("good", "", 5)
    assert one.cpu_us_per_token == 0.5e6 / (64 + PLENTY)


def test_an_itl_error_of_a_millisecond_is_not_good() -> None:
    assert [row(error_us=us).verdict for us in (999.0, 1000.0)] == ["good", "not good"]


def test_a_client_bound_load_is_not_good_whatever_its_stamps_say() -> None:
    one = row(tool=ToolError(client_bound=True, client_bound_why="worker CPU 97 %"))
    assert (one.verdict, one.why) == ("not good", "client_bound: worker CPU 97 %")


def test_a_server_behind_its_pace_is_not_held_against_the_client() -> None:
    late = row(pace=0.9, error_us=5000, tool=ToolError(client_bound=True))
    assert late.verdict == "server late"
    assert "90 %" in late.why
    assert late.itl_error_us_p99 == 5000


def test_a_server_that_stalled_is_not_held_against_the_client() -> None:
    assert row(off_us=15_000, error_us=5000).verdict == "server late"


def test_requests_that_failed_or_lack_a_side_are_no_evidence() -> None:
    assert row(failed=1).verdict == row(left_out=3).verdict == row(gaps=99).verdict == "not measured"


def test_a_p99_of_few_requests_is_missing_not_guessed() -> None:
    assert row(streams=64).ttft_error_us_p99 is None
    assert row(streams=100).ttft_error_us_p99 == 5


def test_it_is_good_for_the_most_streams_below_the_first_that_is_not() -> None:
    assert good_for([row(streams=64), row(streams=256), row(streams=1000, error_us=9000), row(streams=2000)]) == 256
    assert good_for([row(streams=64, error_us=9000), row(streams=256)]) is None
    assert good_for([unmeasured_row(64, 1, "why"), row(streams=256)]) == 256
    assert good_for([]) is None


def test_the_sentence_names_streams_and_workers_and_what_came_after() -> None:
    text = sentence([row(streams=1000, workers=2), row(streams=2000, error_us=9000, workers=2)], itl_ms=20.0)
    assert "good for 1,000 streams of a token each 20 ms, with 2 load workers." in text
    assert "At 2,000, not good: ITL error p99 9.0 ms." in text


def test_where_the_server_gave_up_first_the_client_may_do_more() -> None:
    text = sentence([row(streams=1000), row(streams=2000, pace=0.8)], itl_ms=20.0)
    assert "good for at least 1,000 streams" in text
    assert "server late" in text


def test_without_a_good_row_nothing_is_promised() -> None:
    assert "was not found" in sentence([unmeasured_row(64, 1, "no files")], itl_ms=20.0)


def test_the_table_says_that_it_is_simulated_and_lines_up() -> None:
    text = selftest_text(result(row(streams=64), row(streams=2000, error_us=123_456), unmeasured_row(5000, 1, "why")))
    lines = text.splitlines()
    assert lines[0].startswith("SIMULATED")
    table = [line for line in lines if line.endswith(("verdict", "good", "measured"))]
    ends = {line.index(word) for line, word in zip(table, ("verdict", "good", "not good", "not measured"), strict=True)}
    assert len(ends) == 1
    assert "–" in table[-1]
    assert lines[-1] == sentence(
        result(row(streams=64), row(streams=2000, error_us=123_456), unmeasured_row(5000, 1, "why")).rows, itl_ms=20.0
    )
