#include "sim/c10d/backend_traits.h"

#include <algorithm>
#include <array>

#include "sim/base/expects.h"
#include "sim/c10d/arguments.h"

namespace rollcall {
namespace {

constexpr std::array<BackendTraits, 2> table{{
    {
        .name = "nccl",
        .title = "NCCL",
        .device = DeviceType::cuda,
        .timeout = 600 * second,  // kProcessGroupNCCLDefaultTimeout (ProcessGroupNCCL.hpp)
        .queues_calls = true,
        .raises_timeouts = false,
        .has_tags = false,
        .has_monitored_barrier = false,
        .has_cost_model = true,
        .splits_groups = true,
        .barrier_takes_device = true,
        .exchanges_addresses = false,
        .destroys_together = true,  // communicators are ended together
        .connects_at_first_use = true,
        .records_messages = true,
        .argument_error = nccl_argument_error,
        .texts =
            {
                .hang = "every waiting rank hangs until its watchdog ends it (after 10 min by default): "
                        "\"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=...)\"",
                .crash = "torchrun ends the other ranks when it sees the exit; without it, {hang}",
                .group_args_mismatch = "nothing is compared: new_group returns everywhere, and the first "
                                       "collective on the group hangs",
                .op_mismatch = "operations are not compared: every rank involved usually hangs until its "
                               "watchdog's timeout",
                .size_mismatch =
                    "sizes are not compared: the job usually hangs; small tensors silently give garbage",
                .lost_message = "hangs until the watchdog's timeout; small messages may seem to get through, "
                                "because NCCL's connections hold a few of them",
                .message_mismatch = "nothing is compared: the larger side hangs, or the data are cut off",
                .slow_member = "the watchdog ends the waiting ranks: \"Watchdog caught collective operation "
                               "timeout\"; nothing says that the late rank was on its way",
                .leak = "destructors abort the communicators in an arbitrary order, which can hang or crash "
                        "at exit; newer versions warn that destroy_process_group() was not called",
            },
    },
    {
        .name = "gloo",
        .title = "Gloo",
        .device = DeviceType::cpu,
        .timeout = 1800 * second,  // kProcessGroupDefaultTimeout (Backend.hpp)
        .queues_calls = false,
        .raises_timeouts = true,
        .has_tags = true,
        .has_monitored_barrier = true,
        .has_cost_model = false,
        .splits_groups = false,
        .barrier_takes_device = false,
        .exchanges_addresses = true,
        .destroys_together = false,  // every rank closes its own side
        .connects_at_first_use = false,
        .records_messages = false,
        .argument_error = gloo_argument_error,
        .texts =
            {
                .hang = "every waiting rank blocks in {op} until the group's timeout (30 min by default) and "
                        "raises \"Timed out waiting ... for recv operation to complete\", or \"Connection "
                        "closed by peer\" once a missing rank's process is gone",
                .crash = "every waiting rank raises \"Connection closed by peer\" once the process is gone; "
                         "while it lingers they block in {op} until the group's timeout (30 min by default)",
                .group_args_mismatch = "",  // TorchTraits::gloo_group_args_mismatch
                .op_mismatch = "different operations never exchange data: every rank involved hangs until "
                               "the group's timeout",
                .size_mismatch = "sizes are not compared: a rank that receives more than it expects aborts "
                                 "(gloo::EnforceNotMet), one that receives less hangs or ends with garbage",
                .lost_message =
                    "blocks until the group's timeout: a send completes only when its receive is there",
                .message_mismatch = "dtypes are not compared; a receiver with too little room aborts "
                                    "(gloo::EnforceNotMet), one with too much keeps its tail",
                .slow_member = "the waiting ranks raise \"Timed out waiting ...\"; the late one then finds "
                               "its connections closed",
                .leak = "usually nothing; the connections close with the process",
            },
    },
}};

}  // namespace

std::span<const BackendTraits> known_backends() { return table; }

const BackendTraits* find_backend_traits(std::string_view name) {
  const auto row = std::ranges::find(table, name, &BackendTraits::name);
  return row == table.end() ? nullptr : &*row;
}

const BackendTraits& traits_of(std::string_view name) {
  const BackendTraits* known = find_backend_traits(name);
  return known != nullptr ? *known : default_backend(DeviceType::cuda);
}

const BackendTraits& default_backend(DeviceType device) {
  const auto row = std::ranges::find(table, device, &BackendTraits::device);
  expects(row != table.end(), "ranks compute on CPUs or on CUDA devices");
  return *row;
}

}  // namespace rollcall
