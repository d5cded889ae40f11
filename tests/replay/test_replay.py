import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quantail.errors import QuantailError
from quantail.replay import ReplayJournal, ReplayStore, require_memory
from quantail.replay.memory import available_memory, human_bytes
from quantail.replay.store import FINAL, TERMINAL, TRUNCATED
from quantail.spaces import ObservationSpec, leaves_of, map_leaves, row_of, same
from tests.helpers.replay import COMPRESSED, ENDINGS, PLAIN, TREE, EpisodeRecorder, filled, uniform

KINDS = [(PLAIN, 0), (COMPRESSED, 0), (TREE, 11)]


@pytest.mark.parametrize(("kind", "num_masked"), KINDS, ids=["plain", "compressed", "tree and masks"])
@settings(max_examples=60, deadline=None)
@given(
    envs=st.integers(1, 3),
    length=st.integers(8, 24),
    stack=st.integers(1, 4),
    n=st.integers(1, 4),
    steps=st.lists(st.tuples(st.integers(0, 2), ENDINGS), min_size=1, max_size=90),
)
def test_every_transition_equals_the_oracles_across_episode_ends_environments_and_the_rings_edge(
    kind, num_masked, envs, length, stack, n, steps
):
    recorder = EpisodeRecorder(envs, envs * length, stack, kind, num_masked)
    store = recorder.store
    replay = uniform(store, 4, n, 0.9)
    for env, ending in steps:
        recorder.step(env % envs, ending)
    store.check()
    for env in range(envs):
        oldest, total = int(store.oldest[env]), int(store.written[env])
        for step in range(oldest, total):
            at = np.array([env]), np.array([step])
            valid = bool(replay.can_start(*at)[0])
            origin = recorder.steps[env][step]
            expected = origin and origin[0].transition(origin[1], n, 0.9, stack)
            overwritten = origin is not None and step - min(origin[1], stack - 1) < oldest
            assert valid == (expected is not None and not overwritten)
            if not valid:
                continue
            batch = replay.build_batch(*at)
            observation, action, reward, discount, following, mask, next_mask = expected
            assert same(row_of(batch.observations, 0), observation)
            assert int(batch.actions[0]) == action
            assert float(batch.rewards[0]) == pytest.approx(reward, rel=1e-6)
            assert float(batch.discounts[0]) == pytest.approx(discount, rel=1e-6)
            if following is not None:
                assert same(row_of(batch.next_observations, 0), following)
            if not num_masked:
                assert batch.masks is batch.next_masks is None
                continue
            assert batch.masks[0].tolist() == mask.tolist()
            if following is not None:
                assert batch.next_masks[0].tolist() == next_mask.tolist()


def test_every_whole_transition_is_equally_likely_and_no_other_is_sampled():
    recorder = filled()
    replay = uniform(recorder.store, 50, 3, 0.9)
    counts = {}
    samples = 4000
    for _ in range(samples // 50 * 10):
        env, step = replay.sample_indices(50)
        for key in zip(env.tolist(), step.tolist(), strict=True):
            counts[key] = counts.get(key, 0) + 1
    complete = [
        (env, step)
        for env in range(2)
        for step in range(int(recorder.store.oldest[env]), int(recorder.store.written[env]))
        if replay.can_start(np.array([env]), np.array([step]))[0]
    ]
    assert set(counts) == set(complete)
    expected = sum(counts.values()) / len(counts)
    chi2 = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi2 < len(counts) + 5 * (2 * len(counts)) ** 0.5


def test_a_truncated_episode_bootstraps_from_its_last_frame_and_a_terminated_one_does_not():
    recorder = EpisodeRecorder(1, 32, 1)
    recorder.step(0, "")
    recorder.step(0, "truncated")
    recorder.step(0, "terminated")
    replay = uniform(recorder.store, 3, 1, 0.5)
    env = np.zeros(3, np.int64)
    batch = replay.build_batch(env, np.array([0, 1, 3]))
    assert batch.discounts.tolist() == [0.5, 0.5, 0.0]
    assert batch.next_observations[1].tolist() == [3.0, 10.0]
    assert [int(f) for f in recorder.store.flags[0, :4] & (TERMINAL | TRUNCATED | FINAL)] == [0, 4, 8, 2]


def test_sampling_without_a_complete_transition_raises_an_error():
    recorder = EpisodeRecorder(1, 32, 1)
    replay = uniform(recorder.store, 2, 1, 0.9)
    for _ in range(2):
        with pytest.raises(QuantailError, match="no complete transition"):
            replay.sample()
        if not len(recorder.store):
            recorder.step(0, "")


@pytest.mark.parametrize(("kind", "num_masked"), KINDS, ids=["plain", "compressed", "tree and masks"])
def test_a_batch_owns_its_memory_and_the_next_one_leaves_it_as_it_is(kind, num_masked):
    recorder = EpisodeRecorder(1, 200, 2, kind, num_masked)
    for _ in range(150):
        recorder.step(0, "")
    replay = uniform(recorder.store, 8, 1, 0.9)
    first = replay.sample()
    parts = tensors_of(first)
    copies = {name: part.clone() for name, part in parts.items()}
    second = replay.sample()
    assert (first.indices != second.indices).any()
    assert len(parts) == 7 + 2 * bool(num_masked) + 2 * (len(kind.leaves) - 1)
    for name, copy in copies.items():
        assert torch.equal(parts[name], copy), name
        others = tensors_of(second)[name]
        assert parts[name].untyped_storage().data_ptr() != others.untyped_storage().data_ptr(), name


def tensors_of(batch):
    return {
        (name, path): tensor
        for name, part in vars(batch).items()
        if part is not None
        for path, tensor in leaves_of(part).items()
    }


def test_the_indices_of_a_batch_are_the_flat_positions_of_its_first_steps():
    store = filled().store  # two environments with rings of 20 steps that have wrapped
    replay = uniform(store, 40, 3, 0.9)
    env, step = replay.sample_indices(40)
    batch = replay.build_batch(env, step)
    expected = [e * 20 + s % 20 for e, s in zip(env.tolist(), step.tolist(), strict=True)]
    assert batch.indices.tolist() == expected
    assert batch.indices.dtype == torch.int64
    assert batch.actions.tolist() == store.actions.ravel()[expected].tolist()


@pytest.mark.parametrize(("kind", "num_masked"), KINDS, ids=["plain", "compressed", "tree and masks"])
@settings(max_examples=60, deadline=None)
@given(
    length=st.integers(8, 20),
    rounds=st.lists(
        st.lists(st.tuples(st.integers(0, 1), ENDINGS), max_size=25), min_size=1, max_size=8
    ),
)
def test_a_store_restored_from_its_journal_equals_the_original(
    tmp_path_factory, kind, num_masked, length, rounds
):
    folder = tmp_path_factory.mktemp("journal")
    recorder = EpisodeRecorder(2, 2 * length, 2, kind, num_masked)
    journal = ReplayJournal(folder / "replay", recorder.store)
    state = journal.state_dict()
    for steps in rounds:
        for env, ending in steps:
            recorder.step(env, ending)
        state = journal.state_dict()
        journal.prune(journal.files())
    again = ReplayStore(recorder.store.spec, 2, 2 * length, num_masked)
    ReplayJournal(folder / "replay", again).load_state_dict(state)
    np.testing.assert_array_equal(again.written, recorder.store.written)
    for env in range(2):
        stored = np.arange(again.oldest[env], again.written[env])
        for name in ("actions", "rewards", "flags", "masks"):
            np.testing.assert_array_equal(
                getattr(again, name)[env, stored % length],
                getattr(recorder.store, name)[env, stored % length],
            )
        count = len(stored)
        frames = [
            map_leaves(lambda leaf, n=count: np.zeros((n, *leaf.shape), leaf.dtype), kind.tree)
            for _ in range(2)
        ]
        for store, out in zip((again, recorder.store), frames, strict=True):
            if len(stored):
                store.frames.read(store.indices(env, stored), out)
        assert same(*frames)


def test_a_checkpoint_writes_only_new_steps_and_drops_overwritten_ones(tmp_path):
    recorder = EpisodeRecorder(1, 1000, 1)
    journal = ReplayJournal(tmp_path / "replay", recorder.store)
    sizes = []
    for _ in range(20):
        for _ in range(100):
            recorder.step(0, "")
        segments = journal.state_dict()["segments"]
        journal.prune(journal.files())
        sizes.append((tmp_path / "replay" / segments[-1]["file"]).stat().st_size)
    assert max(sizes) < 1.2 * min(sizes)
    assert len(list((tmp_path / "replay").iterdir())) == len(segments) <= 11


def test_many_new_steps_are_written_to_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr("quantail.replay.journal.STEPS_PER_FILE", 64)
    recorder = EpisodeRecorder(2, 400, 1)
    for step in range(500):
        recorder.step(step % 2, "truncated" if step % 50 == 49 else "")
    state = ReplayJournal(tmp_path / "replay", recorder.store).state_dict()
    segments = state["segments"]
    assert len(segments) > 5
    assert all(sum(s["end"]) - sum(s["begin"]) <= 64 for s in segments)
    again = ReplayStore(recorder.store.spec, 2, 400)
    ReplayJournal(tmp_path / "replay", again).load_state_dict(state)
    again.check()
    every = np.arange(400)
    np.testing.assert_array_equal(
        again.frames.arrays(every)[":frames"], recorder.store.frames.arrays(every)[":frames"]
    )
    np.testing.assert_array_equal(again.written, recorder.store.written)


def test_an_episode_truncated_after_a_checkpoint_is_truncated_in_the_journal_too(tmp_path):
    recorder = EpisodeRecorder(1, 100, 1)
    journal = ReplayJournal(tmp_path / "replay", recorder.store)
    recorder.step(0, "")
    journal.state_dict()
    recorder.store.truncate(0, recorder.frame())
    state = journal.state_dict()
    again = ReplayStore(recorder.store.spec, 1, 100)
    ReplayJournal(tmp_path / "replay", again).load_state_dict(state)
    assert again.flags[0, 0] & TRUNCATED
    again.check()


def test_bytes_needed_is_the_memory_of_the_store():
    spec = ObservationSpec.array((10, 10, 4), "bool", "hwc", 1)
    for num_masked in (0, 11):
        store = ReplayStore(spec, 1, 1000, num_masked)
        fields = (store.actions, store.rewards, store.flags, store.masks)
        used = 1000 * 400 + sum(field.nbytes for field in fields)
        assert ReplayStore.bytes_needed(spec, 1000, num_masked) == used


def test_a_replay_buffer_that_does_not_fit_in_memory_is_refused():
    free = available_memory()
    assert free
    require_memory(1000)
    with pytest.raises(QuantailError, match="set a smaller buffer_size"):
        require_memory(2 * free)


def test_sizes_are_shown_in_decimal_units():
    assert [human_bytes(n) for n in (12, 12_300, 7_065_000_000)] == ["12 bytes", "12.3 kB", "7.1 GB"]


def test_the_returns_of_the_newest_episode_match_a_plain_loop_and_stop_at_its_first_step():
    recorder = EpisodeRecorder(1, 32, 1)
    for ending in ("", "", "terminated", "", "life", "", "truncated"):
        recorder.step(0, ending)
    episode = recorder.steps[0][-2][0]  # the truncated episode
    expected, total = [], 0.0
    for reward, terminal in zip(reversed(episode.rewards), reversed(episode.terminal), strict=True):
        total = reward + (0.0 if terminal else 0.5 * total)
        expected.append(total)
    assert recorder.store.newest_returns(0, 0.5).tolist() == [0.0, *expected]
    assert len(expected) == 4


def test_an_episode_truncated_where_a_life_was_lost_stores_no_final_frame():
    store = ReplayStore(ObservationSpec.array((2,), "float32", "vector"), 1, 20)
    store.add(0, np.zeros(2), 0, 1.0, first=True, terminal=True)
    store.truncate(0, np.ones(2))
    store.add(0, np.zeros(2), 0, 1.0, first=True, terminal=False)
    store.truncate(0, np.ones(2))
    store.check()
    assert store.written.tolist() == [3]
