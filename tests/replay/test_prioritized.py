import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quantail.errors import QuantailError
from quantail.replay import PrioritizedSampler, Replay, ReplayStore
from quantail.replay.prioritized import LEAST
from quantail.replay.sum_tree import SumTree
from tests.helpers.replay import ENDINGS, Written, filled

WEIGHTS = st.one_of(st.just(0.0), st.floats(1e-9, 1e6))


def naive(weights, target):
    """The first leaf at which the running total exceeds the target."""
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
def test_a_tree_is_always_what_a_plain_list_would_be(size, writes):
    tree, plain = SumTree(size), [0.0] * size
    for batch in writes:
        index = np.array([i % size for i, _ in batch], np.int64)
        tree.set(index, np.array([weight for _, weight in batch]))
        for i, (_, weight) in zip(index, batch, strict=True):
            plain[i] = weight  # of one named twice the last counts
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
def test_a_target_finds_the_leaf_that_a_walk_over_all_leaves_finds(weights, shares):
    tree = SumTree(len(weights))
    tree.set(np.arange(len(weights)), np.array(weights, float))  # whole numbers: sums are exact
    targets = np.array(shares) * tree.total
    assert tree.find(targets).tolist() == [naive(weights, t) for t in targets]


@settings(max_examples=150, deadline=None)
@given(
    weights=st.lists(WEIGHTS, min_size=1, max_size=400).filter(any),
    share=st.sampled_from([0.0, 0.5, 1 - 2**-53, 1.0, 1 + 1e-9]),
)
def test_a_leaf_of_weight_zero_is_never_found_even_at_the_very_end(weights, share):
    tree = SumTree(len(weights))
    tree.set(np.arange(len(weights)), np.array(weights))
    found = int(tree.find(np.array([share * tree.total]))[0])
    assert weights[found] > 0


def prioritized(store, exponent=0.6, seed=0, batch_size=50, n_step=3):
    sampler = PrioritizedSampler(store, exponent, np.random.default_rng(seed))
    return Replay(store, sampler, batch_size, n_step, 0.9), sampler


def whole(replay):
    """Every place where a whole transition starts."""
    store = replay.store
    return [
        (env, place)
        for env in range(store.envs)
        for place in range(int(store.oldest[env]), int(store.written[env]))
        if replay.can_start(np.array([env]), np.array([place]))[0]
    ]


def give(replay, priorities):
    """Tell the sampler these priorities, {(env, place): priority}."""
    env, place = (np.array(part) for part in zip(*priorities, strict=True))
    replay.sampler.learned(env, place, torch.tensor(list(priorities.values())))


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
def test_transitions_are_drawn_in_proportion_to_their_priority_raised_to_alpha(exponent):
    replay, _ = prioritized(filled().store, exponent)
    replay.draw(1)  # takes in what was written
    rng = np.random.default_rng(1)
    priorities = {key: float(p) for key, p in zip(whole(replay), rng.exponential(2, 999), strict=False)}
    give(replay, priorities)
    counts = dict.fromkeys(priorities, 0)
    for _ in range(800):
        for key in zip(*(part.tolist() for part in replay.draw(50)), strict=True):
            counts[key] += 1  # a KeyError would be a place without a whole transition
    law = np.array([(p + LEAST) ** exponent for p in priorities.values()])
    expected = 40_000 * law / law.sum()
    seen = np.array(list(counts.values()))
    likely = expected > 5
    chi2 = ((seen - expected)[likely] ** 2 / expected[likely]).sum()
    assert chi2 < likely.sum() + 5 * (2 * likely.sum()) ** 0.5


def test_importance_weights_undo_the_draw_and_the_largest_is_one():
    replay, _ = prioritized(filled().store, 0.7)
    replay.draw(1)
    places = whole(replay)
    priorities = {key: 0.5 + index for index, key in enumerate(places)}
    give(replay, priorities)
    total = sum((p + LEAST) ** 0.7 for p in priorities.values())
    batch = replay.sample(importance=0.4)
    drawn = list(zip(*(part.tolist() for part in replay._drawn), strict=True))
    raw = [(len(places) * (priorities[key] + LEAST) ** 0.7 / total) ** -0.4 for key in drawn]
    assert batch.weights.tolist() == pytest.approx([w / max(raw) for w in raw], rel=1e-5)
    assert batch.weights.dtype == torch.float32
    assert float(batch.weights.max()) == 1
    assert (replay.sample(importance=0.0).weights == 1).all()


def test_with_full_importance_the_weighted_batch_is_an_unbiased_mean_of_the_replay():
    replay, _ = prioritized(filled().store, 1.0)
    replay.draw(1)
    places = whole(replay)
    give(replay, {key: 1.0 + (index % 9) for index, key in enumerate(places)})
    everything = replay.sampler.tree.leaves
    drawn, weighted = 0.0, 0.0
    for _ in range(600):
        batch = replay.sample(importance=1.0)
        env, place = replay._drawn
        # Relative to the least priority of the batch; 1 is the least of all.
        scale = everything[env * replay.store.length + place % replay.store.length].min()
        drawn += float((batch.weights / scale).sum())
        weighted += float((batch.weights / scale * batch.rewards).sum())
    buffers = Replay(replay.store, replay.sampler, len(places), 3, 0.9)
    env, place = (np.array(part) for part in zip(*places, strict=True))
    plain = float(buffers.gather(env, place).rewards.mean())
    assert weighted / drawn == pytest.approx(plain, rel=0.03)


def test_what_is_new_has_the_largest_priority_ever_seen_and_final_frames_none():
    written = Written(1, 200, 1)
    replay, sampler = prioritized(written.store, 0.5, n_step=1)
    for _ in range(6):
        written.step(0, "")
    replay.draw(1)
    assert sampler.tree.leaves[:6].tolist() == [1.0] * 5 + [0.0]  # the last has no next frame yet
    give(replay, {(0, 0): 9.0, (0, 1): 0.0})
    give(replay, {(0, 0): 0.25})
    written.step(0, "truncated")  # a transition and a final frame
    written.step(0, "")
    replay.draw(1)
    largest = (9.0 + LEAST) ** 0.5
    expected = [(0.25 + LEAST) ** 0.5, LEAST**0.5, 1, 1, 1, largest, largest, 0, 0]
    assert sampler.tree.leaves[:9].tolist() == pytest.approx(expected)


def test_a_place_that_cannot_start_has_no_weight_however_large_a_priority_was_once():
    """Else draws would be rejected without end after one spike."""
    written = Written(2, 60, 3)
    replay, _ = prioritized(written.store, 1.0, n_step=3, batch_size=8)
    for step in range(100):
        written.step(step % 2, "")
        if step == 40:
            replay.draw(1)
            give(replay, dict.fromkeys(whole(replay), 1e12))
        if step > 40:
            replay.draw(1)
            give(replay, dict.fromkeys(whole(replay), 0.0))
            env, place = replay.sampler.draw(50, replay.can_start)
            assert replay.can_start(env, place).all()


def test_a_replay_without_a_whole_transition_says_so():
    written = Written(1, 4096, 1)
    replay, _ = prioritized(written.store)
    for _ in range(3):
        with pytest.raises(QuantailError, match="no whole transition"):
            replay.sample()
        written.step(0, "")


@pytest.mark.parametrize("wrong", [float("inf"), float("nan")])
def test_a_priority_that_is_not_finite_stops_with_its_cause(wrong):
    replay, _ = prioritized(filled().store)
    replay.draw(1)
    with pytest.raises(QuantailError, match="not finite: learning diverged"):
        give(replay, {whole(replay)[0]: wrong})


@settings(max_examples=80, deadline=None)
@given(
    length=st.integers(8, 24),
    stack=st.integers(1, 3),
    n=st.integers(1, 3),
    rounds=st.lists(
        st.lists(st.tuples(st.integers(0, 1), ENDINGS), min_size=1, max_size=40), min_size=1, max_size=6
    ),
)
def test_across_the_rings_edge_each_place_keeps_its_own_priority_and_new_ones_start_afresh(
    length, stack, n, rounds
):
    """Against a dictionary from place to priority."""
    written = Written(2, 2 * length, stack)
    store = written.store
    replay, sampler = prioritized(store, 1.0, batch_size=6, n_step=n)
    oracle, largest, known = {}, 1.0, set()
    for turn, steps in enumerate(rounds):
        for env, ending in steps:
            written.step(env, ending)
        able = set(whole(replay))
        for env in range(2):
            for place in range(int(store.oldest[env]), int(store.written[env])):
                if (env, place) not in able:
                    oracle[env, place] = 0.0
                elif (env, place) not in known:
                    oracle[env, place] = largest
        if not able:
            continue
        known |= able
        env, place = replay.draw(6)
        assert set(zip(env.tolist(), place.tolist(), strict=True)) <= set(whole(replay))
        priorities = torch.arange(6.0) + turn
        sampler.learned(env, place, priorities)
        for key, priority in zip(
            zip(env.tolist(), place.tolist(), strict=True), priorities, strict=True
        ):
            oracle[key] = float(priority) + LEAST
            largest = max(largest, oracle[key])
        for env in range(2):
            for place in range(int(store.oldest[env]), int(store.written[env])):
                leaf = sampler.tree.leaves[env * length + place % length]
                assert leaf == pytest.approx(oracle[env, place])
        sampler.tree.check_valid()


def test_a_sampler_restored_from_its_arrays_draws_the_same_and_learns_the_same():
    written = filled()
    replay, sampler = prioritized(written.store)
    replay.draw(1)
    give(replay, {key: float(index % 5) for index, key in enumerate(whole(replay))})
    written.step(0, "")  # written, and not yet taken in
    again, other = prioritized(written.store)
    other.restore(sampler.arrays())
    other.generator.bit_generator.state = sampler.generator.bit_generator.state
    assert other.largest == sampler.largest
    for _ in range(3):
        a, b = replay.sample(0.5), again.sample(0.5)
        assert torch.equal(a.observations, b.observations)
        assert torch.equal(a.weights, b.weights)
        replay.learned(torch.rand(50, generator=torch.Generator().manual_seed(1)))
        again.learned(torch.rand(50, generator=torch.Generator().manual_seed(1)))
        written.step(1, "")
    assert (sampler.tree.leaves == other.tree.leaves).all()


def test_the_bytes_announced_are_the_bytes_taken_by_the_tree():
    store = ReplayStore(filled().store.spec, 1, 1_000_000)
    tree = PrioritizedSampler(store, 0.5, np.random.default_rng(0)).tree
    taken = sum(level.nbytes for level in tree.levels)
    assert PrioritizedSampler.bytes_needed(1_000_000) == taken
