"""What PyTorch's own counters say of the steps of steps.py, as JSON: FlopCounterMode the operations of a step, MemTracker the
bytes at the peak of three. With torch 2.14: USE_LIBUV=0 python3 count_steps.py > ../data/torch_2_14/step_costs.json

On the CPU attention is one kernel of its own, which FlopCounterMode does not list; it is given torch's formula for the others.
"""

import json
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils import flop_counter

import steps

_aten = torch.ops.aten


def flops_of(name):
    model, given = steps.model_of(name)

    def forward(query, key, value, *_, out_val=None, **__):
        return flop_counter.sdpa_flop_count(query.shape, key.shape, value.shape)

    def backward(gradient, query, key, value, *_, out_val=None, **__):
        return flop_counter.sdpa_backward_flop_count(gradient.shape, query.shape, key.shape, value.shape)

    for count in (forward, backward):
        count._get_raw = True
    own = {_aten._scaled_dot_product_flash_attention_for_cpu: forward,
           _aten._scaled_dot_product_flash_attention_for_cpu_backward: backward}
    with flop_counter.FlopCounterMode(display=False, custom_mapping=own) as counter:
        model(given).square().mean().backward()
    return counter.get_total_flops()


def peak_of(name, optimizer, how):
    model, given = steps.model_of(name)
    if how == "fsdp":
        steps.shard(model, mesh=init_device_mesh("cpu", (8,)))
    else:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = steps.optimizer_of(optimizer, model.parameters())
    if how == "fsdp":
        tracker = FSDPMemTracker(model, optimizer)
        tracker.track_inputs((given,))
    else:
        tracker = MemTracker()
        tracker.track_external(model.module, optimizer, given)
    with tracker:
        for _ in range(3):
            loss = model(given).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            tracker.reset_mod_stats()
    return sum(each["Total"] for each in tracker.get_tracker_snapshot("peak").values())


def main():
    counted = {"torch": torch.__version__,
               "flops": {name: flops_of(name) for name in ("mlp", "convolution", "attention", "transformer")}, "peaks": {}}
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29612")
    for how in ("ddp", "fsdp"):
        kind = {"backend": "gloo", "rank": 0, "world_size": 1} if how == "ddp" else {
            "backend": "fake", "rank": 0, "world_size": 8, "store": FakeStore()}
        dist.init_process_group(**kind)
        for name in ("mlp", "transformer") if how == "ddp" else ("transformer",):
            for optimizer in ("sgd", "adam"):
                counted["peaks"][f"{name} {optimizer} {how}"] = peak_of(name, optimizer, how)
        dist.destroy_process_group()
    print(json.dumps(counted, indent=2))


if __name__ == "__main__":
    main()
