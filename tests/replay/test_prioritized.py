import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quantail.errors import QuantailError
from quantail.replay import PrioritizedConfig, PrioritizedSampler, Replay, ReplayStore
from quantail.replay.prioritized import MIN_PRIORITY
from quantail.replay.sum_tree import SumTree
from tests.helpers.replay import ENDINGS, EpisodeRecorder, filled

WEIGHTS = st.one_of(st.just(0.0), st.floats(1e-9, 1e6))


def naive(weights, target):
    """Return the first leaf at which the running total exceeds the target."""
    total = 0.0
    for index, weight in enumerate(weights):
        total += weight
        if total > target:
            return index
    return max(index for index, weight in enumerate(weights) if weight > 0)


@settings(max_examples=150, deadline=None)
@given(
    size=st.integers(1, 700),
    writes=st.lists(st.lists(st.tuples(st.integers(0, 10**6), WEIGHTS), max_size=30), max_size=8),
)
def test_a_sum_tree_behaves_like_a_plain_list_of_weights(size, writes):
    tree, plain = SumTree(size), [0.0] * size
    for batch in writes:
        index = np.array([i % size for i, _ in batch], np.int64)
        tree.set(index, np.array([weight for _, weight in batch]))
        for i, (_, weight) in zip(index, batch, strict=True):
            plain[i] = weight  # for an index that occurs twice, the last weight is used
        tree.check_valid()
    assert tree.leaves.tolist() == plain
    assert tree.total == pytest.approx(sum(plain), rel=1e-12)
    again = SumTree(size)
    again.set(np.arange(size), tree.leaves)
    assert all((a == b).all() for a, b in zip(tree.levels, again.levels, strict=True))


@settings(max_examples=150, deadline=None)
@given(
    weights=st.lists(st.integers(0, 20), min_size=1, max_size=600).filter(any),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=40),
)
def test_find_returns_the_leaf_that_a_linear_search_finds(weights, shares):
    tree = SumTree(len(weights))
    tree.set(np.arange(len(weights)), np.array(weights, float))  # complete numbers: sums are exact
    targets = np.array(shares) * tree.total
    assert tree.find(targets).tolist() == [naive(weights, t) for t in targets]


@settings(max_examples=150, deadline=None)
@given(
    weights=st.lists(WEIGHTS, min_size=1, max_size=400).filter(any),
    share=st.sampled_from([0.0, 0.5, 1 - 2**-53, 1.0, 1 + 1e-9]),
)
def test_a_leaf_of_weight_zero_is_never_returned_even_at_the_very_end(weights, share):
    tree = SumTree(len(weights))
    tree.set(np.arange(len(weights)), np.array(weights))
    found = int(tree.find(np.array([share * tree.total]))[0])
    assert weights[found] > 0


def prioritized(store, exponent=0.6, seed=0, batch_size=50, n_step=3):
    generator = np.random.default_rng(seed)
    sampler = PrioritizedSampler(store, generator, PrioritizedConfig(exponent))
    return Replay(store, sampler, batch_size, n_step, 0.9), sampler


def complete(replay):
    """Return every (env, step) at which a complete transition starts."""
    store = replay.store
    return [
        (env, step)
        for env in range(store.num_envs)
        for step in range(int(store.oldest[env]), int(store.written[env]))
        if replay.can_start(np.array([env]), np.array([step]))[0]
    ]


def set_priorities(replay, priorities):
    """Give the sampler these priorities, {(env, step): priority}."""
    indices = torch.from_numpy(indices_of(replay.store, priorities))
    replay.update_priorities(indices, torch.tensor(list(priorities.values())))


def indices_of(store, steps):
    """Return the flat positions of (env, step) pairs."""
    return np.array([env * store.length + step % store.length for env, step in steps])


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
def test_transitions_are_sampled_in_proportion_to_their_priority_raised_to_alpha(exponent):
    replay, _ = prioritized(filled().store, exponent)
    replay.sample_indices(1)  # adds the stored transitions to the tree
    rng = np.random.default_rng(1)
    priorities = {
        key: float(p) for key, p in zip(complete(replay), rng.exponential(2, 999), strict=False)
    }
    set_priorities(replay, priorities)
    counts = dict.fromkeys(priorities, 0)
    for _ in range(800):
        for key in zip(*(part.tolist() for part in replay.sample_indices(50)), strict=True):
            counts[key] += 1  # a KeyError would mean a step without a complete transition
    distribution = np.array([(p + MIN_PRIORITY) ** exponent for p in priorities.values()])
    expected = 40_000 * distribution / distribution.sum()
    seen = np.array(list(counts.values()))
    likely = expected > 5
    chi2 = ((seen - expected)[likely] ** 2 / expected[likely]).sum()
    assert chi2 < likely.sum() + 5 * (2 * likely.sum()) ** 0.5


def test_importance_weights_correct_the_sampling_bias_and_their_maximum_is_one():
    replay, _ = prioritized(filled().store, 0.7)
    replay.sample_indices(1)
    steps = complete(replay)
    priorities = {key: 0.5 + index for index, key in enumerate(steps)}
    set_priorities(replay, priorities)
    total = sum((p + MIN_PRIORITY) ** 0.7 for p in priorities.values())
    batch = replay.sample(importance=0.4)
    at = dict(zip(indices_of(replay.store, steps), priorities.values(), strict=True))
    sampled = [at[index] for index in batch.indices.tolist()]
    raw = [(len(steps) * (priority + MIN_PRIORITY) ** 0.7 / total) ** -0.4 for priority in sampled]
    assert batch.weights.tolist() == pytest.approx([w / max(raw) for w in raw], rel=1e-5)
    assert batch.weights.dtype == torch.float32
    assert float(batch.weights.max()) == 1
    assert (replay.sample(importance=0.0).weights == 1).all()


def test_with_full_importance_the_weighted_batch_is_an_unbiased_mean_of_the_replay():
    replay, _ = prioritized(filled().store, 1.0)
    replay.sample_indices(1)
    steps = complete(replay)
    set_priorities(replay, {key: 1.0 + (index % 9) for index, key in enumerate(steps)})
    leaves = replay.sampler.tree.leaves
    total, weighted = 0.0, 0.0
    for _ in range(600):
        batch = replay.sample(importance=1.0)
        # Weights are relative to the smallest priority of the batch; the smallest of all is 1.
        scale = leaves[batch.indices].min()
        total += float((batch.weights / scale).sum())
        weighted += float((batch.weights / scale * batch.rewards).sum())
    buffers = Replay(replay.store, replay.sampler, len(steps), 3, 0.9)
    env, step = (np.array(part) for part in zip(*steps, strict=True))
    plain = float(buffers.build_batch(env, step).rewards.mean())
    assert weighted / total == pytest.approx(plain, rel=0.03)


def test_new_transitions_get_the_largest_priority_ever_seen_and_final_frames_get_none():
    recorder = EpisodeRecorder(1, 200, 1)
    replay, sampler = prioritized(recorder.store, 0.5, n_step=1)
    for _ in range(6):
        recorder.step(0, "")
    replay.sample_indices(1)
    assert sampler.tree.leaves[:6].tolist() == [1.0] * 5 + [0.0]  # the last step has no next frame yet
    set_priorities(replay, {(0, 0): 9.0, (0, 1): 0.0})
    set_priorities(replay, {(0, 0): 0.25})
    recorder.step(0, "truncated")  # a transition and a final frame
    recorder.step(0, "")
    replay.sample_indices(1)
    largest = (9.0 + MIN_PRIORITY) ** 0.5
    expected = [(0.25 + MIN_PRIORITY) ** 0.5, MIN_PRIORITY**0.5, 1, 1, 1, largest, largest, 0, 0]
    assert sampler.tree.leaves[:9].tolist() == pytest.approx(expected)


def test_priorities_belong_to_their_own_batch_even_if_another_one_was_sampled_in_between():
    replay, sampler = prioritized(filled().store, 1.0, batch_size=4)
    first = replay.sample()
    second = replay.sample()
    only = sorted(set(first.indices.tolist()) - set(second.indices.tolist()))
    assert only
    replay.update_priorities(first.indices, torch.full((4,), 7.0))
    assert sampler.tree.leaves[only] == pytest.approx(7.0 + MIN_PRIORITY)
    before = sampler.tree.leaves.copy()
    replay.update_priorities(second.indices, torch.full((4,), 3.0))
    assert sampler.tree.leaves[second.indices] == pytest.approx(3.0 + MIN_PRIORITY)
    assert (sampler.tree.leaves[only] == before[only]).all()


def test_priorities_that_come_late_give_no_weight_to_a_step_that_starts_no_transition():
    recorder = EpisodeRecorder(1, 20, 1)
    for _ in range(20):
        recorder.step(0, "")
    replay, sampler = prioritized(recorder.store, 1.0, batch_size=50, n_step=1)
    late = replay.sample()
    for _ in range(9):
        recorder.step(0, "truncated")  # a transition and a final frame each
    replay.sample_indices(1)
    replay.update_priorities(late.indices, torch.full((50,), 7.0))
    startable = indices_of(recorder.store, complete(replay))
    assert np.flatnonzero(sampler.tree.leaves).tolist() == sorted(startable)
    assert replay.can_start(*sampler.sample(500, replay.can_start)).all()


def test_a_step_that_starts_no_transition_has_no_weight_however_large_priorities_have_been():
    """Otherwise sampling would reject without end after one very large priority."""
    recorder = EpisodeRecorder(2, 60, 3)
    replay, _ = prioritized(recorder.store, 1.0, n_step=3, batch_size=8)
    for step in range(100):
        recorder.step(step % 2, "")
        if step == 40:
            replay.sample_indices(1)
            set_priorities(replay, dict.fromkeys(complete(replay), 1e12))
        if step > 40:
            replay.sample_indices(1)
            set_priorities(replay, dict.fromkeys(complete(replay), 0.0))
            sampled = replay.sampler.sample(50, replay.can_start)
            assert replay.can_start(*sampled).all()


def test_sampling_without_a_complete_transition_raises_an_error():
    recorder = EpisodeRecorder(1, 4096, 1)
    replay, _ = prioritized(recorder.store)
    for _ in range(3):
        with pytest.raises(QuantailError, match="no complete transition"):
            replay.sample()
        recorder.step(0, "")


@pytest.mark.parametrize("wrong", [float("inf"), float("nan")])
def test_a_priority_that_is_not_finite_raises_an_error_with_its_cause(wrong):
    replay, _ = prioritized(filled().store)
    replay.sample_indices(1)
    with pytest.raises(QuantailError, match="not finite: learning diverged"):
        set_priorities(replay, {complete(replay)[0]: wrong})


@settings(max_examples=80, deadline=None)
@given(
    length=st.integers(8, 24),
    stack=st.integers(1, 3),
    n=st.integers(1, 3),
    rounds=st.lists(
        st.lists(st.tuples(st.integers(0, 1), ENDINGS), min_size=1, max_size=40), min_size=1, max_size=6
    ),
)
def test_across_the_rings_edge_each_step_keeps_its_priority_and_new_ones_start_with_the_largest(
    length, stack, n, rounds
):
    """The oracle is a dictionary from (env, step) to priority."""
    recorder = EpisodeRecorder(2, 2 * length, stack)
    store = recorder.store
    replay, sampler = prioritized(store, 1.0, batch_size=6, n_step=n)
    oracle, largest, known = {}, 1.0, set()
    for index, steps in enumerate(rounds):
        for env, ending in steps:
            recorder.step(env, ending)
        startable = set(complete(replay))
        for env in range(2):
            for step in range(int(store.oldest[env]), int(store.written[env])):
                if (env, step) not in startable:
                    oracle[env, step] = 0.0
                elif (env, step) not in known:
                    oracle[env, step] = largest
        if not startable:
            continue
        known |= startable
        env, step = replay.sample_indices(6)
        assert set(zip(env.tolist(), step.tolist(), strict=True)) <= set(complete(replay))
        priorities = torch.arange(6.0) + index
        sampler.update_priorities(store.indices(env, step), priorities)
        for key, priority in zip(zip(env.tolist(), step.tolist(), strict=True), priorities, strict=True):
            oracle[key] = float(priority) + MIN_PRIORITY
            largest = max(largest, oracle[key])
        for env in range(2):
            for step in range(int(store.oldest[env]), int(store.written[env])):
                leaf = sampler.tree.leaves[env * length + step % length]
                assert leaf == pytest.approx(oracle[env, step])
        sampler.tree.check_valid()


def test_a_restored_sampler_samples_and_updates_like_the_original():
    recorder = filled()
    replay, sampler = prioritized(recorder.store)
    replay.sample_indices(1)
    set_priorities(replay, {key: float(index % 5) for index, key in enumerate(complete(replay))})
    recorder.step(0, "")  # in the store, but not yet in the tree
    again, other = prioritized(recorder.store)
    other.load_state_dict(sampler.state_dict())
    other.generator.bit_generator.state = sampler.generator.bit_generator.state
    assert other.max_priority == sampler.max_priority
    for _ in range(3):
        a, b = replay.sample(0.5), again.sample(0.5)
        assert torch.equal(a.observations, b.observations)
        assert torch.equal(a.weights, b.weights)
        priorities = torch.rand(50, generator=torch.Generator().manual_seed(1))
        replay.update_priorities(a.indices, priorities)
        again.update_priorities(b.indices, priorities)
        recorder.step(1, "")
    assert (sampler.tree.leaves == other.tree.leaves).all()


WRONG_ARRAYS = {
    "gone": ("leaves", None, "lacks leaves"),
    "one number for all": ("leaves", np.ones(1), r"leaves is float64 of shape \(1,\)"),
    "too many": ("known", np.zeros(3, np.int64), r"known is int64 of shape \(3,\)"),
    "another dtype": ("leaves", np.ones(40, np.float32), "leaves is float32"),
    "negative": ("leaves", np.full(40, -1.0), "leaves cannot be -1.0"),
    "not a number": ("leaves", np.full(40, np.nan), "leaves cannot be nan"),
    "infinite": ("largest", np.array([np.inf]), "largest cannot be inf"),
    "steps that are not stored": ("known", np.array([0, 10**6]), "known cannot be 1000000"),
}


@pytest.mark.parametrize(("name", "wrong", "says"), WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_arrays_of_another_sampler_are_refused_and_change_nothing(name, wrong, says):
    replay, sampler = prioritized(filled().store)
    replay.sample_indices(1)
    before = sampler.state_dict()
    changed = {key: array for key, array in before.items() if key != name}
    with pytest.raises(ValueError, match=says):
        sampler.load_state_dict(changed if wrong is None else changed | {name: wrong})
    assert all((sampler.state_dict()[key] == array).all() for key, array in before.items())


def test_bytes_needed_is_the_memory_of_the_tree():
    store = ReplayStore(filled().store.spec, 1, 1_000_000)
    tree = PrioritizedSampler(store, np.random.default_rng(0), PrioritizedConfig()).tree
    used = sum(level.nbytes for level in tree.levels)
    assert PrioritizedSampler.bytes_needed(1_000_000) == used
