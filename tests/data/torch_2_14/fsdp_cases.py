"""The cases of record_fsdp.py. tests/unit/train/fully_shard_test.cc runs the same models.

world, mesh            ranks, and [replicate, shard] for HSDP
units                  of each its parameters' shapes, or {"params", "reshard", "frozen", "dtypes", "inner"}
root                   {"before", "after"}: parameters of the root itself, used before and after the units; "reshard"
reshard                reshard_after_forward of all that have none of their own; absent: None
mp                     {"param_dtype", "reduce_dtype"}
program                the steps of every rank; with per_rank, of each
backend, ranks         "fake" for calls only, of these ranks
api                    "fsdp1" for FullyShardedDataParallel, with strategy, forward_prefetch and backward_prefetch
"""

STEP = ["forward", "backward", "step", "zero_grad"]
LINEAR = [[4, 4], [4]]
THREE = [LINEAR, LINEAR, [[2, 4], [2]]]
STEM_AND_HEAD = {"before": [[6, 4]], "after": [[3, 4], [3]]}

CASES = {}


def add(name, **case):
    CASES[name] = case


for _reshard in (None, True, False):
    _name = {None: "default", True: "reshard", False: "keep"}[_reshard]
    add("three_units_" + _name, world=2, units=THREE, reshard=_reshard, program=STEP * 2 + ["full"])
    add("root_before_and_after_" + _name, world=2, units=THREE, root=STEM_AND_HEAD, reshard=_reshard,
        program=STEP * 2 + ["full"])
add("root_before", world=2, units=THREE, root={"before": [[6, 4]]}, program=STEP * 2 + ["full"])
add("root_before_reshard", world=2, units=THREE, root={"before": [[6, 4]], "reshard": True}, program=STEP * 2)
add("root_after", world=2, units=THREE, root={"after": [[3, 4], [3]]}, program=STEP * 2 + ["full"])
add("root_after_reshard", world=2, units=THREE, root={"after": [[3, 4], [3]], "reshard": True}, program=STEP * 2)
add("root_not_sharded", world=2, units=THREE, wrap_root=False, program=STEP * 2)
add("one_unit", world=2, units=[LINEAR], program=STEP * 2)
add("root_only", world=2, units=[], root={"before": LINEAR, "after": LINEAR}, program=STEP * 2 + ["full"])
add("input_needs_gradient", world=2, units=THREE, root=STEM_AND_HEAD,
    program=[["forward", {"input_grad": True}], "backward"])

# Padding: dimension 0 is cut into parts of ceil(size / ranks).
add("uneven_parameters", world=3, units=[[[5, 3], [5]], [[1, 4], [2], [7]], [[3, 2, 2], [1]]], root={"after": [[4, 2]]},
    program=STEP * 2 + ["grads", "shards", "full"])
add("uneven_four_ranks", world=4, units=[[[5, 3], [6]], [[9]], [[2, 8]]],
    program=["forward", "backward", "clip", "grads", "step", "full", "state_dict"])
add("fewer_rows_than_ranks", world=4, units=[[[2, 3]], [[1]]], program=STEP + ["grads", "full"])
add("reshard_per_unit", world=2, units=[{"params": LINEAR, "reshard": True}, {"params": LINEAR, "reshard": False},
                                        {"params": LINEAR, "reshard": True}], root=STEM_AND_HEAD, program=STEP * 2)

# The ranks of the smaller group that parameters are resharded to.
add("reshard_to_two", world=4, units=THREE, reshard=2, program=STEP * 2 + ["full"])
add("reshard_to_two_root", world=4, units=THREE, root=dict(STEM_AND_HEAD, reshard=True), reshard=2, program=STEP * 2)
add("reshard_to_one", world=4, units=THREE, reshard=1, program=STEP * 2)
add("reshard_to_all", world=4, units=THREE, reshard=4, program=STEP * 2)
add("reshard_to_two_uneven", world=4, units=[[[5, 3], [6]], [[9]], [[2, 8]]], reshard=2, program=STEP * 2 + ["full"])

# HSDP
add("hsdp", world=4, mesh=[2, 2], units=THREE, root=STEM_AND_HEAD, program=STEP * 2 + ["full"])
add("hsdp_clip", world=4, mesh=[2, 2], units=THREE, program=["forward", "backward", "clip", "grads", "step", "full"])
add("hsdp_reshard_to_two", world=8, mesh=[2, 4], units=THREE, reshard=2, backend="fake", ranks=[0, 3, 6],
    program=STEP * 2)
add("hsdp_2x4", world=8, mesh=[2, 4], units=THREE, root=STEM_AND_HEAD, backend="fake", ranks=[0, 5],
    program=STEP * 2 + ["full"])
add("hsdp_accumulate", world=4, mesh=[2, 2], units=THREE,
    program=[["set_requires_all_reduce", False], "forward", "backward", "forward", "backward",
             ["set_requires_all_reduce", True], "forward", "backward", "grads"])
add("hsdp_accumulate_unsharded", world=4, mesh=[2, 2], units=THREE,
    program=[["set_requires_gradient_sync", False], "forward", "backward", ["set_requires_gradient_sync", True],
             "forward", "backward", "grads"])
add("hsdp_float64", world=4, mesh=[2, 2], mp={"reduce_dtype": "float64"}, units=THREE, program=STEP)

# Mixed precision
add("mixed_bfloat16", world=2, mp={"param_dtype": "bfloat16"}, units=THREE, root=STEM_AND_HEAD, backend="fake",
    program=STEP * 2)
add("mixed_bfloat16_reduce_float32", world=2, mp={"param_dtype": "bfloat16", "reduce_dtype": "float32"}, units=THREE,
    root=STEM_AND_HEAD, backend="fake", program=STEP * 2)
add("mixed_float16", world=8, mp={"param_dtype": "float16"}, units=THREE, backend="fake", ranks=[0, 7], program=STEP)
add("mixed_reduce_bfloat16", world=2, mp={"reduce_dtype": "bfloat16"}, units=THREE, backend="fake", program=STEP)
add("mixed_float64", world=2, mp={"param_dtype": "float64", "reduce_dtype": "float32"}, units=THREE,
    program=STEP * 2 + ["grads", "full"])
add("mixed_reduce_float64", world=3, mp={"reduce_dtype": "float64"}, units=THREE, program=STEP + ["full"])
add("mixed_accumulate", world=2, mp={"param_dtype": "float64", "reduce_dtype": "float32"}, units=THREE,
    program=[["set_requires_gradient_sync", False], "forward", "backward", ["set_requires_gradient_sync", True],
             "forward", "backward", "grads"])
add("two_dtypes", world=2, units=[{"params": LINEAR, "dtypes": ["float32", "float64"], "frozen": [1]}, LINEAR],
    program=STEP)
add("two_dtypes_trainable", world=2, units=[{"params": LINEAR, "dtypes": ["float32", "float64"]}, LINEAR],
    program=STEP)

# Prefetching
FOUR = [LINEAR, LINEAR, LINEAR, LINEAR]
add("forward_prefetch_one", world=2, units=FOUR, forward_prefetch={0: [1], 1: [2], 2: [3]}, program=STEP * 2)
add("forward_prefetch_two", world=2, units=FOUR, root=STEM_AND_HEAD, forward_prefetch={0: [1, 2], 1: [2, 3], 2: [3]},
    program=STEP * 2)
add("backward_prefetch_two", world=2, units=FOUR, root=STEM_AND_HEAD, backward_prefetch={3: [2, 1], 2: [1, 0], 1: [0]},
    program=STEP * 2)
add("backward_prefetch_none_needed", world=2, units=FOUR, reshard=False, backward_prefetch={3: [2, 1]}, program=STEP)
add("unshard_ahead", world=2, units=FOUR, program=[["unshard", 0], ["unshard", 2]] + STEP + [["unshard", 1], ["reshard", 1]] + STEP)
add("embedding_not_needed_in_backward", world=2, units=THREE, keep_sharded_in_backward=[0], program=STEP * 2)

# Gradient accumulation
add("accumulate_no_sync", world=2, units=THREE, root=STEM_AND_HEAD,
    program=[["set_requires_gradient_sync", False], "forward", "backward", "forward", "backward",
             ["set_requires_gradient_sync", True], "forward", "backward", "grads", "step", "zero_grad"] + STEP)
add("accumulate_with_sync", world=2, units=THREE, program=["forward", "backward", "forward", "backward", "grads", "step", "full"])
add("accumulate_keep_unsharded", world=2, units=THREE, root=STEM_AND_HEAD,
    program=[["set_requires_gradient_sync", False], ["set_reshard_after_backward", False], "forward", "backward",
             "forward", "backward", ["set_requires_gradient_sync", True], ["set_reshard_after_backward", True],
             "forward", "backward", "grads"] + STEP)
add("not_the_last_backward", world=2, units=THREE, root=STEM_AND_HEAD,
    program=[["set_is_last_backward", False], "forward", "backward", "forward", "backward",
             ["set_is_last_backward", True], "forward", "backward", "step", "zero_grad"] + STEP)
add("no_sync_on_one_unit", world=2, units=THREE,
    program=[["set_requires_gradient_sync", False, 1], "forward", "backward",
             ["set_requires_gradient_sync", True, 1], "forward", "backward", "grads"])
add("reshard_after_forward_turned_off", world=2, units=THREE,
    program=STEP + [["set_reshard_after_forward", False]] + STEP + [["set_reshard_after_forward", True]] + STEP)
add("reshard_after_backward_off", world=2, units=THREE, reshard=True,
    program=[["set_reshard_after_backward", False]] + STEP * 2)

# Units that a rank does not run
add("evaluation", world=2, units=THREE, root=STEM_AND_HEAD,
    program=STEP + [["forward", {"grad": False}], ["forward", {"grad": False}]] + STEP)
add("evaluation_first", world=2, units=THREE, program=[["forward", {"grad": False}]] + STEP)
add("two_forwards_one_backward", world=2, units=THREE, root=STEM_AND_HEAD, program=["forward", "forward", "backward"] + STEP)
add("skipped_unit", world=2, units=THREE, root=STEM_AND_HEAD, program=[["forward", {"skip": [1]}], "backward"] + STEP)
add("skipped_unit_zero_gradients", world=2, units=THREE, reduce_scatter_unused_params=True,
    program=STEP + [["forward", {"skip": [1]}], "backward", "grads"])
add("skipped_unit_on_one_rank", world=2, units=THREE, per_rank=True, linger=2,
    program=[STEP, [["forward", {"skip": [1]}], "backward", "step", "zero_grad"]])
add("unused_parameter", world=2, units=THREE, program=[["forward", {"unused": [1]}], "backward", "grads"] + STEP)
add("unused_parameter_zero_gradients", world=2, units=THREE, reduce_scatter_unused_params=True,
    program=[["forward", {"unused": [1]}], "backward", "grads"])
add("frozen_first_unit", world=2, units=[{"params": LINEAR, "frozen": True}, LINEAR, LINEAR], program=STEP * 2)
add("frozen_middle_unit", world=2, units=[LINEAR, {"params": LINEAR, "frozen": True}, LINEAR], program=STEP * 2)
add("frozen_bias", world=2, units=[{"params": LINEAR, "frozen": [1]}, LINEAR], root=STEM_AND_HEAD, program=STEP * 2)
add("frozen_all_but_head", world=2, units=[{"params": LINEAR, "frozen": True}, {"params": LINEAR, "frozen": True}],
    root={"after": [[3, 4]]}, program=STEP * 2)

# Nested units
add("nested", world=2, units=[{"params": LINEAR, "inner": [[[3, 3]], [[2, 2]]]}, {"params": LINEAR, "inner": [[[3, 3]]]}],
    root=STEM_AND_HEAD, program=STEP * 2)
add("nested_keep", world=2, reshard=False, units=[{"params": LINEAR, "inner": [[[3, 3]], [[2, 2]]]}, LINEAR], program=STEP * 2)

# Gathering and norms
add("clip", world=2, units=THREE, program=["forward", "backward", "clip", "grads", "step", "full"])
add("clip_infinity", world=2, units=THREE, program=["forward", "backward", ["clip", "inf"], "step"])
add("clip_one", world=2, units=THREE, program=["forward", "backward", ["clip", 1.0], "step"])
add("clip_some_without_gradient", world=2, units=[{"params": LINEAR, "frozen": [1]}, LINEAR], program=["forward", "backward", "clip"])
add("clip_without_gradients", world=2, units=THREE, program=["clip"])
add("state_dict", world=3, units=[[[5, 3], [5]], [[1, 4]]], root=STEM_AND_HEAD, program=["state_dict"] + STEP + ["state_dict"])
add("divide_factor", world=2, units=THREE, divide_factor=2, program=STEP)
add("divide_factor_other", world=2, units=THREE, divide_factor=4, backend="fake", program=STEP)
add("force_sum", world=3, units=THREE, force_sum=True, program=["forward", "backward", "grads"])
add("world_of_one", world=1, units=THREE, root=STEM_AND_HEAD, program=STEP + ["forward", "backward", "clip", "step", "full"])
add("hsdp_shard_of_one", world=2, mesh=[2, 1], units=THREE, program=STEP + ["forward", "backward", "clip", "step", "full"])
add("hsdp_replicate_of_one", world=2, mesh=[1, 2], units=THREE, program=STEP * 2 + ["full"])

# Ranks that diverge. What Gloo does with mismatched calls is modeled in sim/gloo; here only the calls count.
add("first_rank_has_no_inputs", world=2, units=THREE, per_rank=True, linger=3, program=[[], STEP])
add("one_input_more", world=2, units=THREE, per_rank=True, linger=3, program=[STEP, STEP * 2])
add("one_input_more_then_full", world=2, units=THREE, per_rank=True, linger=3, program=[STEP + ["full"], STEP * 2 + ["full"]])

# Mistakes
add("scalar_parameter", world=2, units=[[[]]], program=STEP)
add("reshard_to_three_of_four", world=4, units=THREE, reshard=3, program=STEP)

# FullyShardedDataParallel: units of one flat parameter each.
def add_fsdp1(name, **case):
    add("fsdp1_" + name, api="fsdp1", world=case.pop("world", 2), units=case.pop("units", THREE), **case)


for _strategy in ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"):
    _name = _strategy.lower()
    add_fsdp1(_name, strategy=_strategy, program=STEP * 2 + ["full"])
    add_fsdp1(_name + "_root", strategy=_strategy, root=STEM_AND_HEAD, program=STEP * 2)
    add_fsdp1(_name + "_no_sync", strategy=_strategy, root=STEM_AND_HEAD,
              program=["enter_no_sync", "forward", "backward", "leave_no_sync", "forward", "backward", "step", "zero_grad"] + STEP)
add_fsdp1("root_before", root={"before": [[6, 4]]}, program=STEP * 2)
add_fsdp1("root_after", root={"after": [[3, 4], [3]]}, program=STEP * 2)
for _prefetch in ("BACKWARD_PRE", "BACKWARD_POST", None):
    _name = str(_prefetch).lower()
    add_fsdp1(_name, backward_prefetch=_prefetch, program=STEP * 2)
    add_fsdp1(_name + "_root", backward_prefetch=_prefetch, root=STEM_AND_HEAD, program=STEP * 2)
    add_fsdp1(_name + "_root_after", backward_prefetch=_prefetch, root={"after": [[3, 4], [3]]}, program=STEP * 2)
add_fsdp1("forward_prefetch", forward_prefetch=True, root=STEM_AND_HEAD, program=STEP * 2)
add_fsdp1("uneven", world=3, units=[[[5, 3], [6]], [[9]], [[2, 8]]], root=STEM_AND_HEAD, program=STEP * 2 + ["full"])
add_fsdp1("clip", root=STEM_AND_HEAD, program=["forward", "backward", "clip", "step", "full"])
add_fsdp1("clip_infinity", program=["forward", "backward", ["clip", "inf"], "step"])
add_fsdp1("clip_no_shard", strategy="NO_SHARD", program=["forward", "backward", "clip", "step"])
add_fsdp1("state_dict", root=STEM_AND_HEAD, program=["state_dict"] + STEP + ["state_dict"])
add_fsdp1("evaluation", root=STEM_AND_HEAD, program=STEP + [["forward", {"grad": False}]] + STEP)
add_fsdp1("accumulate_with_sync", program=["forward", "backward", "forward", "backward", "step", "full"])
add_fsdp1("world_of_one", world=1, root=STEM_AND_HEAD, program=STEP * 2)

# Sharded within a group, replicated across groups: the dimensions of a mesh are replicate and shard.
for _strategy in ("HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"):
    _name = "hybrid" + ("_zero2" if _strategy.startswith("_") else "")
    add_fsdp1(_name, strategy=_strategy, world=4, mesh=[2, 2], root=STEM_AND_HEAD, program=STEP * 2 + ["full"])
    add_fsdp1(_name + "_no_sync", strategy=_strategy, world=4, mesh=[2, 2],
              program=["enter_no_sync", "forward", "backward", "leave_no_sync", "forward", "backward", "step", "full"])
add_fsdp1("hybrid_2x4", strategy="HYBRID_SHARD", world=8, mesh=[2, 4], backend="fake", ranks=[0, 5], program=STEP * 2)
add_fsdp1("hybrid_clip", strategy="HYBRID_SHARD", world=4, mesh=[2, 2],
          program=["forward", "backward", "clip", "step", "full"])
add_fsdp1("hybrid_post", strategy="HYBRID_SHARD", world=4, mesh=[2, 2], backward_prefetch="BACKWARD_POST",
          program=STEP * 2)
add_fsdp1("hybrid_shard_of_one", strategy="HYBRID_SHARD", world=2, mesh=[2, 1], program=STEP * 2 + ["full"])
add_fsdp1("hybrid_replicate_of_one", strategy="HYBRID_SHARD", world=2, mesh=[1, 2], program=STEP * 2 + ["full"])

for _strategy in ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"):
    _name = _strategy.lower()
    add_fsdp1("mixed_float64_" + _name, strategy=_strategy, mp={"param_dtype": "float64"}, root=STEM_AND_HEAD,
              program=STEP * 2 + ["full"])
    add_fsdp1("mixed_reduce_float64_" + _name, strategy=_strategy, mp={"reduce_dtype": "float64"},
              program=STEP * 2 + ["full"])
add_fsdp1("mixed_both", mp={"param_dtype": "float64", "reduce_dtype": "float32"}, program=STEP * 2 + ["full"])
add_fsdp1("mixed_accumulate", mp={"param_dtype": "float64", "reduce_dtype": "float32"},
          program=["enter_no_sync", "forward", "backward", "leave_no_sync", "forward", "backward", "step", "full"])
add_fsdp1("mixed_clip", mp={"param_dtype": "float64"}, program=["forward", "backward", "clip", "step", "full"])
add_fsdp1("mixed_evaluation", mp={"param_dtype": "float64"},
          program=STEP + [["forward", {"grad": False}], "state_dict"] + STEP)
add_fsdp1("mixed_bfloat16", mp={"param_dtype": "bfloat16"}, root=STEM_AND_HEAD, backend="fake", program=STEP * 2)
add_fsdp1("mixed_bfloat16_reduce_float32", mp={"param_dtype": "bfloat16", "reduce_dtype": "float32"},
          backend="fake", program=STEP * 2)
add_fsdp1("mixed_hybrid", strategy="HYBRID_SHARD", world=4, mesh=[2, 2],
          mp={"param_dtype": "float64", "reduce_dtype": "float32"}, program=STEP * 2 + ["full"])
