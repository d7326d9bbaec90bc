"""One item is read ahead and one is written behind, never more; errors reach the caller, and threads end."""

import threading
import time
import traceback
from collections.abc import Callable, Iterator

import pytest

from gpu_encode.scale.files.run import Background, read_ahead


class Failure(Exception):
    pass


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("gpu-encode")]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_one_item_is_read_ahead_and_no_more() -> None:
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            yield number

    with Background("gpu-encode") as thread:
        for number in read_ahead(thread, numbers()):
            expected = min(number + 2, 10)
            until(lambda expected=expected: len(made) == expected)  # type: ignore[misc]
            time.sleep(0.005)
            assert len(made) == expected
    assert made == list(range(10))
    assert threads() == []


def test_an_error_of_reading_is_raised_where_items_are_taken() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise Failure("page 7")

    taken: list[int] = []
    with pytest.raises(Failure, match="page 7") as caught, Background("gpu-encode") as thread:
        taken.extend(read_ahead(thread, broken()))
    assert taken == [1]
    assert "in broken" in "".join(traceback.format_exception(caught.value))
    assert threads() == []


@pytest.mark.parametrize("error", [Failure, KeyboardInterrupt])
def test_an_error_of_the_work_ends_reading(error: type[BaseException]) -> None:
    told: list[bool] = []

    def endless(thread: Background) -> Iterator[int]:
        number = 0
        while not thread.stopped:
            yield number
            number += 1
        told.append(True)

    def work() -> None:
        with Background("gpu-encode") as thread:
            for number in read_ahead(thread, endless(thread)):
                if number == 3:
                    raise error

    with pytest.raises(error):
        work()
    assert threads() == []


def test_items_are_written_one_after_another() -> None:
    written: list[int] = []
    gate = threading.Semaphore(0)

    def write(number: int) -> None:
        gate.acquire()
        written.append(number)

    with Background("gpu-encode") as thread:
        thread.start(write, 0)
        late = threading.Thread(target=thread.start, args=(write, 1))
        late.start()
        time.sleep(0.01)
        assert late.is_alive()  # the first is being written
        gate.release()
        late.join()
        assert written == [0]
        gate.release()
        thread.wait()
    assert written == [0, 1]
    assert threads() == []


@pytest.mark.parametrize("items", [1, 3])
def test_an_error_of_writing_is_raised_where_items_are_given(items: int) -> None:
    def write(number: int) -> None:
        raise Failure(f"disk {number}")

    def work(thread: Background) -> None:
        for number in range(items):
            thread.start(write, number)
        thread.wait()

    with pytest.raises(Failure, match="disk 0") as caught, Background("gpu-encode") as thread:
        work(thread)
    assert "in write" in "".join(traceback.format_exception(caught.value))
    assert threads() == []


def test_an_error_of_the_work_leaves_what_waits_unwritten() -> None:
    written: list[int] = []

    def write(number: int) -> None:
        time.sleep(0.02)
        written.append(number)

    def work() -> None:
        with Background("gpu-encode") as thread:
            thread.start(write, 0)
            thread.start(write, 1)
            raise Failure

    with pytest.raises(Failure):
        work()
    assert written in ([0], [0, 1])
    assert threads() == []


def test_time_is_counted() -> None:
    def slow() -> Iterator[int]:
        for number in range(2):
            time.sleep(0.03)
            yield number

    with Background("gpu-encode") as reading, Background("gpu-encode") as writing:
        for _ in read_ahead(reading, slow()):
            writing.start(time.sleep, 0.02)
        writing.wait()
    assert reading.seconds >= 0.06
    assert 0.02 <= reading.waited <= reading.seconds + 0.05
    assert writing.seconds >= 0.04
