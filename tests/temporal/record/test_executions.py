"""What of a worker's activations gets into the log, and how it goes on where a worker has to begin anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from errands import Errand, Rounds, Sums
from lived_executions import Lived, Worker, branches, effects, prepared_for, recorded, resolved, steps
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

import lockstep
from lockstep.log.store import open_store
from lockstep.log.verify import verify
from lockstep_temporal.prepared import Prepared

WHOLE = ["start Errand", "activity fetch", "timer 3s", "activity fetch"]


@pytest.fixture(scope="module")
def prepared() -> Iterator[Prepared]:
    with prepared_for(Errand, Rounds, Sums) as found:
        yield found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def errand(prepared: Prepared) -> Iterator[Lived]:
    lived = Lived(prepared, Errand, "milk", True)
    lived.resolve((1, "a pint"))
    lived.fire(1)
    lived.resolve((2, "two pints"))
    yield lived
    lived.close()


def identical(store: Path, run: str = "temporal/errand", branch: str = "main", target: type = Errand) -> bool:
    address = run if branch == "main" else f"{run}@{branch}"
    replay = lockstep.replay(address, target, store=str(store))
    assert replay.divergence is None, replay.divergence
    return replay.identical


def test_each_workflow_task_is_a_step_with_the_answers_that_it_brought(store: Path, errand: Lived) -> None:
    with Worker(store, errand) as worker:
        worker.sees(errand.tasks)
    assert steps(store) == WHOLE
    with recorded(store) as found:
        (turn,) = found.turns
        assert (turn.cause, turn.status, turn.arguments) == ("start", "ok", ["milk", True])
        assert [(e.name, e.seq, e.asked, e.answered) for e in found.effects] == [
            ("fetch", 1, 0, 1), ("3s", 1, 1, 2), ("fetch", 2, 2, 3),
        ]  # fmt: skip
        assert [found.request(each) for each in found.effects] == [
            {"arguments": ["milk"]}, {"seconds": 3}, {"arguments": ["more milk"]},
        ]  # fmt: skip
        assert [found.answer(each) for each in found.effects] == ["a pint", None, "two pints"]
        for step, task in zip(found.steps, errand.tasks, strict=True):
            assert step.tasks() == [task]
        assert found.reader.info.state == "complete"
    assert identical(store)


def test_a_worker_that_comes_later_goes_on_where_the_log_ends(store: Path, errand: Lived) -> None:
    with Worker(store, errand) as first:
        first.sees(errand.tasks[:2])
    with Worker(store, errand) as second:
        second.is_given_again(errand.tasks[:2])
        second.sees(errand.tasks[2:])
    assert steps(store) == WHOLE
    assert branches(store) == ["main"]
    assert [end for _, end in effects(store)] == ["ok", "ok", "ok"]
    with recorded(store) as found:
        assert found.reader.info.state == "complete"
    assert identical(store)


def test_an_execution_that_was_under_way_before_recording_began_is_recorded_whole(store: Path, errand: Lived) -> None:
    with Worker(store, errand) as worker:
        worker.is_given_again(errand.tasks[:3])
        worker.sees(errand.tasks[3:])
    assert steps(store) == WHOLE
    assert identical(store)


def test_what_a_worker_without_the_plugin_did_is_recorded_by_the_next_one(store: Path, errand: Lived) -> None:
    with Worker(store, errand) as first:
        first.sees(errand.tasks[:1])
    with Worker(store, errand) as third:
        third.is_given_again(errand.tasks[:3])
        third.sees(errand.tasks[3:])
    assert steps(store) == WHOLE
    assert identical(store)


def test_an_instance_that_is_evicted_and_made_anew_in_one_process_writes_nothing_twice(
    store: Path, errand: Lived
) -> None:
    with Worker(store, errand) as worker:
        worker.sees(errand.tasks[:1])
        worker.is_evicted()
        for done in (1, 2, 3):
            again = Worker(store, errand, worker.books)
            again.is_given_again(errand.tasks[:done])
            again.sees(errand.tasks[done : done + 1])
            again.is_evicted()
    assert steps(store) == WHOLE
    assert branches(store) == ["main"]
    assert identical(store)


def test_a_workflow_task_that_the_server_did_not_take_is_in_a_branch_of_its_own(
    store: Path, prepared: Prepared
) -> None:
    lost = Lived(prepared, Errand, "milk")
    lost.resolve((1, "a pint"))
    lost.resolve((2, "two pints"))
    taken = Lived(prepared, Errand, "milk")
    taken.resolve((1, "a pint"))
    taken.signal("tell", "the shop is closing", longer=4)
    taken.resolve((2, "two pints"))
    with Worker(store, lost) as worker:
        worker.sees(lost.tasks)  # the last one ended the workflow, and a signal came before that got there
        again = Worker(store, taken, worker.books)
        again.is_given_again(taken.tasks[:2])
        again.sees(taken.tasks[2:])
    assert branches(store) == ["main", "retried"]
    assert problems(store, "temporal/errand") == []
    assert steps(store, branch="retried") == ["start Errand", "activity fetch", "signal tell", "activity fetch"]
    assert effects(store, branch="retried") == [("fetch", "ok"), ("fetch", "ok"), ("tell", "ok")]
    with recorded(store, branch="retried") as found:
        (turn,) = found.turns
        assert (turn.status, turn.steps) == ("ok", range(4))
        assert found.record.result(found.record.turns[-1])["told"] == ["the shop is closing"]  # type: ignore[index, call-overload]
    assert identical(store, branch="retried")
    assert identical(store)
    with Worker(store, taken) as later:  # another process goes on with the branch that was taken
        later.is_given_again(taken.tasks[:3])
        later.sees(taken.tasks[3:])
    assert branches(store) == ["main", "retried"]


def test_the_first_workflow_task_may_be_the_one_that_was_not_taken(store: Path, prepared: Prepared) -> None:
    lost = Lived(prepared, Errand, "milk")
    taken = Lived(prepared, Errand, "milk")
    taken.tasks[0][0].history_length += 3
    taken.length += 3
    taken.resolve((1, "a pint"))
    with Worker(store, lost) as worker:
        worker.sees(lost.tasks)
    with Worker(store, taken) as worker:
        worker.sees(taken.tasks)
    assert steps(store, branch="retried") == ["start Errand", "activity fetch"]
    assert identical(store, branch="retried")


def test_a_workflow_task_that_comes_once_more_and_is_answered_the_same_is_there_once(
    store: Path, errand: Lived
) -> None:
    with Worker(store, errand) as first:
        first.sees(errand.tasks[:2])
    with Worker(store, errand) as second:
        second.is_given_again(errand.tasks[:1])
        second.sees(errand.tasks[1:])
    assert branches(store) == ["main"]
    assert steps(store) == WHOLE
    assert identical(store)


def test_local_activities_belong_to_the_workflow_task_that_they_ran_in(store: Path, prepared: Prepared) -> None:
    lived = Lived(prepared, Sums, "milk")
    lived.resolve((1, 3), local=True)
    lived.resolve((2, 3), local=True)
    lived.resolve((3, "a pint"))
    with Worker(store, lived) as worker:
        worker.sees(lived.tasks)
    assert steps(store) == ["start Sums, add_up, add_up", "activity fetch"]
    with recorded(store) as found:
        assert len(found.steps[0].tasks()) == 3
        assert [(each.kind, each.asked, each.answered) for each in found.effects] == [
            ("local_activity", 0, 0), ("local_activity", 0, 0), ("activity", 0, 1),
        ]  # fmt: skip
    assert identical(store, target=Sums)


def test_a_worker_that_died_in_the_middle_of_a_workflow_task_leaves_a_branch_without_it(
    store: Path, prepared: Prepared
) -> None:
    lived = Lived(prepared, Sums, "milk")
    lived.resolve((1, 3), local=True)
    lived.resolve((2, 3), local=True)
    lived.resolve((3, "a pint"))
    with Worker(store, lived) as first:
        first.sees(lived.tasks[:2])
    with Worker(store, lived) as second:
        second.sees(lived.tasks)
    assert steps(store, branch="retried") == ["start Sums, add_up, add_up", "activity fetch"]
    assert effects(store, branch="retried") == [("add_up", "ok"), ("add_up", "ok"), ("fetch", "ok")]
    assert identical(store, branch="retried", target=Sums)


def test_executions_of_a_chain_are_turns_of_one_run(store: Path, prepared: Prepared) -> None:
    first = Lived(prepared, Rounds, 1)
    first.resolve((1, "x"))
    second = Lived(prepared, Rounds, 0, run_id="run-2", first_run_id="run-1", continued_from="run-1")
    second.resolve((1, "y"))
    for lived in (first, second):  # each in a process of its own
        with Worker(store, lived) as worker:
            worker.sees(lived.tasks)
    with recorded(store) as found:
        assert [(turn.run_id, turn.cause, turn.status, turn.steps) for turn in found.turns] == [
            ("run-1", "start", "ok", range(2)), ("run-2", "continue_as_new", "ok", range(2, 4)),
        ]  # fmt: skip
        assert found.record.result(found.record.turns[0]) == {
            "continue_as_new": {"workflow_type": "Rounds", "arguments": [0]}
        }
    assert identical(store, target=Rounds)


def test_a_reset_is_a_branch_that_goes_on_from_what_it_shares(store: Path, prepared: Prepared, errand: Lived) -> None:
    with Worker(store, errand) as worker:
        worker.sees(errand.tasks)
    reset = Lived(prepared, Errand, "milk", True, run_id="run-9", first_run_id="run-1", original="run-1")
    reset.resolve((1, "a pint"))
    reset.fire(1)
    reset.resolve((2, "three pints"), longer=9)
    with Worker(store, reset) as worker:
        worker.is_given_again(reset.tasks[:3])
        worker.sees(reset.tasks[3:])
    assert branches(store) == ["main", "reset"]
    assert steps(store, branch="reset") == WHOLE
    with recorded(store, branch="reset") as found:
        (turn,) = found.turns
        assert (turn.run_id, turn.status, turn.steps) == ("run-9", "ok", range(4))
        assert found.answer(found.effects[-1]) == "three pints"


def test_an_id_that_is_used_again_gets_a_run_of_its_own(
    store: Path, prepared: Prepared, errand: Lived, caplog: pytest.LogCaptureFixture
) -> None:
    with Worker(store, errand) as worker:
        worker.sees(errand.tasks)
        other = Lived(prepared, Errand, "bread", run_id="run-7")
        Worker(store, other, worker.books).sees(other.tasks)
    with open_store(str(store)) as opened:
        assert opened.names() == ["temporal/errand-2", "temporal/errand"]
    assert "temporal/errand-2" in caplog.text


def test_queries_are_no_steps(store: Path, prepared: Prepared) -> None:
    lived = Lived(prepared, Errand, "milk")
    query = lived.query("so_far")
    lived.resolve((1, "a pint"))
    with Worker(store, lived) as worker:
        worker.sees([lived.tasks[0], query, lived.tasks[1]])
    assert steps(store) == ["start Errand", "activity fetch"]


def test_a_query_of_a_workflow_that_is_not_recorded_makes_no_run(store: Path, errand: Lived) -> None:
    with Worker(store, errand) as worker:
        worker.is_given_again(errand.tasks)
        worker.sees([errand.query("so_far")])
        assert worker.books.store.names() == []


def test_a_rejected_update_is_no_step_and_is_told_of_in_the_next_one(store: Path, prepared: Prepared) -> None:
    lived = Lived(prepared, Errand, "milk")
    lived.update("correct", "")
    lived.update("correct", "bread", id="u-2")
    with Worker(store, lived) as worker:
        worker.sees(lived.tasks)
    assert steps(store) == ["start Errand", "update correct"]
    with recorded(store) as found:
        assert found.steps[1].field("rejected") == ["correct"]
    assert identical(store)


def test_a_workflow_task_that_failed_is_told_of_in_the_step_that_follows(store: Path, errand: Lived) -> None:
    failed = WorkflowActivationCompletion()
    failed.failed.failure.message = "no module named errand"
    with Worker(store, errand) as worker:
        worker.sees(errand.tasks[:1])
        for _ in range(3):
            worker.sees([(errand.tasks[1][0], failed)])
        worker.sees(errand.tasks[1:])
    assert steps(store) == WHOLE
    with recorded(store) as found:
        (told,) = found.steps[1].field("failed")  # type: ignore[misc, union-attr]
        assert (told["times"], told["failure"]["args"]) == (3, ["no module named errand"])  # type: ignore[call-overload, index]
        assert found.steps[2].field("failed") is None
    assert identical(store)


def test_several_answers_at_once_keep_their_order(store: Path, prepared: Prepared) -> None:
    lived = Lived(prepared, Errand, "milk")
    lived.signal("tell", "one")
    lived.give(resolved(1, "a pint"))
    with Worker(store, lived) as worker:
        worker.sees(lived.tasks)
    assert [name for name, _ in effects(store)] == ["fetch", "tell", "fetch"]


def test_many_executions_that_are_on_at_once_are_each_recorded_whole(store: Path, prepared: Prepared) -> None:
    every = [Lived(prepared, Errand, "milk", workflow_id=f"errand-{n}", run_id=f"run-{n}") for n in range(80)]
    with Worker(store, every[0]) as first:
        workers = [first, *(Worker(store, lived, first.books) for lived in every[1:])]
        for number in range(3):
            for worker, lived in zip(workers, every, strict=True):
                if number:
                    lived.resolve((number, f"pint {number}"))
                worker.sees(lived.tasks[number:])
    for n in (0, 40, 79):
        assert steps(store, f"temporal/errand-{n}") == ["start Errand", "activity fetch", "activity fetch"]
        assert identical(store, f"temporal/errand-{n}")
        assert problems(store, f"temporal/errand-{n}") == []


def problems(store: Path, run: str) -> list[str]:
    with open_store(str(store)) as opened:
        return [str(problem) for problem in verify(opened.run(run)).problems]
