#include "viz/kinds/kind_examples.h"

#include <algorithm>
#include <array>

namespace rollcall::viz {
namespace {

constexpr std::string_view gloo_timeout =
    "The waiting ranks raise \"Timed out waiting 1800000ms for recv operation to complete\" after half an "
    "hour, or "
    "\"Connection closed by peer\" as soon as the process of the missing rank has ended.";
constexpr std::string_view nccl_watchdog =
    "The kernels spin with the GPU at 100 %. After 10 minutes the watchdog of a waiting rank ends the job: "
    "\"Watchdog "
    "caught collective operation timeout\". It names the rank that waited.";
constexpr std::string_view gloo_garbage =
    "Nothing is compared: a longer message than expected aborts the process (gloo::EnforceNotMet), a shorter "
    "one "
    "leaves part of the result as it was, and the next calls read each other's data.";
constexpr std::string_view nccl_garbage =
    "Nothing is compared: the kernels hang, or end with wrong sums. TORCH_DISTRIBUTED_DEBUG=DETAIL raises "
    "instead "
    "and shows both calls.";
constexpr std::string_view no_check = "Nothing: the call is a good one as far as it can see.";
constexpr std::string_view no_streams =
    "Nothing: waiting holds up the host, which then reads what is complete.";
constexpr std::string_view of_us = "None: it is about a run of rollcall.";
constexpr std::string_view from_dump =
    "Where dumps come from: set TORCH_NCCL_TRACE_BUFFER_SIZE and TORCH_NCCL_DUMP_ON_TIMEOUT.";
constexpr std::string_view no_recorder =
    "Gloo has no Flight Recorder in most versions; py-spy shows where ranks are.";

constexpr std::array examples{
    KindExample{"missing_participant",
                "rank 0:     all_reduce x 4\n"
                "ranks 1-3:  all_reduce x 5      # the fifth waits for rank 0",
                gloo_timeout, nccl_watchdog,
                "pytorch/pytorch#38174, Lightning-AI/pytorch-lightning#379, "
                "huggingface/accelerate#2785, deepspeedai/DeepSpeed#860"},
    KindExample{"stale_shard",
                "with Join([ddp, zero]): for x in inputs: ddp(x).sum().backward(); zero.step()\n"
                "rank 0:     has joined; main_hook calls step() with the gradients of its last iteration\n"
                "ranks 1-3:  go on, and take rank 0's shard from it",
                "Nothing is raised, and the parameters of rank 0's shard are wrong.",
                "The same: nothing is raised.", ""},
    KindExample{
        "rank_crashed",
        "rank 0:     raise ValueError\n"
        "ranks 1-3:  all_reduce          # waits for rank 0",
        "The others raise \"Connection closed by peer\" when the process of the one has gone: their errors "
        "come "
        "after its own and bury it.",
        "torchrun ends the others. Without a launcher they wait for their watchdog, 10 minutes later.",
        "snowflakedb/ArcticTraining#233, pytorch/pytorch#94835, Lightning-AI/pytorch-lightning#6430"},
    KindExample{"unmatched_send",
                "rank 0:  send(x, dst=1)         # waits for a recv\n"
                "rank 1:  ends",
                "The send blocks: rank 0 raises after its timeout, or when rank 1's connection closes.",
                "The send's kernel spins until the watchdog ends it. A small message may seem to get "
                "through, because "
                "the connection buffers some of it.",
                "pytorch/pytorch#108378"},
    KindExample{"unmatched_recv",
                "rank 0:  recv(x, src=1)         # waits for a send\n"
                "rank 1:  ends",
                "The recv blocks until its timeout, or until rank 1's connection closes.",
                "The recv's kernel spins until the watchdog ends it.", "NVIDIA/nccl#2130"},
    KindExample{"wrong_peer",
                "rank 0:  send(x, dst=2)         # rank 1 waits for it\n"
                "rank 1:  recv(x, src=0)\n"
                "rank 2:  ends",
                "The send and the recv block until their timeouts, which name ranks 2 and 0.",
                "Both kernels spin until the watchdog ends them; a small send may seem to get through.",
                "meta-pytorch/torchrec#4601 has it with a broadcast"},
    KindExample{"send_send",
                "rank 0:  send(x, dst=1); recv(y, src=1)\n"
                "rank 1:  send(x, dst=0); recv(y, src=0)",
                "Both block in send: a send completes when its data are taken.",
                "Both kernels spin; messages smaller than the connection's buffer get through, so that a "
                "larger model "
                "begins to hang.",
                "NVIDIA/nccl#479, pytorch/pytorch#172668"},
    KindExample{"recv_recv",
                "rank 0:  recv(x, src=1); send(y, dst=1)\n"
                "rank 1:  recv(x, src=0); send(y, dst=0)",
                "Both block in recv until the timeout.", "Both kernels spin until the watchdog ends them.",
                "pytorch/pytorch#109401"},
    KindExample{"p2p_order",
                "rank 0:  isend(a, 1); irecv(b, 1)   # nccl: one queue for the pair\n"
                "rank 1:  isend(b, 0); wait; irecv(a, 0)",
                "Often nothing: messages with other tags or directions do not wait for each other.",
                "Everything between two ranks is one queue in the order of the calls; only a batch "
                "progresses together.",
                "pytorch/pytorch#109401, NVIDIA/nccl#2130"},
    KindExample{"order_crossing",
                "rank 0:  all_reduce(x, tp); all_reduce(y, dp)\n"
                "rank 1:  all_reduce(y, dp); all_reduce(x, tp)   # both are in both groups",
                "Both block; asynchronous calls do not, as each group has its own connections.",
                "Blocks where the host waits between the calls, or where the GPU has no room for both "
                "kernels. Sequence "
                "numbers of all groups agree, so nothing looks wrong.",
                "NVIDIA/nccl#899, meta-pytorch/torchrec#4149, pytorch/pytorch#155558, ray-project/ray#62651"},
    KindExample{"store_never_served",
                "rank 0:  ends\n"
                "rank 1:  store.get(\"ready\")      # nobody has set it",
                "store.get raises \"Socket Timeout\" after the store's limit (5 to 30 minutes).",
                "The same: the store is TCP between hosts, whatever moves the tensors.",
                "pytorch/pytorch#191957"},
    KindExample{
        "store_cycle",
        "rank 0:  store.get(\"done\"); barrier()\n"
        "rank 1:  barrier(); store.set(\"done\", 1)",
        "The barrier and the get both run into their limits, whichever is shorter first.",
        "The same. A GPU that synchronises in a memory call is such a wait, too, and is in no program.",
        "ngimel/nccl.torch#3, NVIDIA/TensorRT-LLM#10665"},
    KindExample{
        "join_hook_mismatch",
        "forward:    all_reduce(1000); all_reduce(64)\n"
        "main_hook:  all_reduce(1000)                  # the second one is missing",
        "A joined rank's next call meets the second all_reduce: another size aborts, an equal one is added "
        "up.",
        "The same call hangs, or is added up. Join itself compares nothing.",
        "pytorch/pytorch#44425 (no_sync), pytorch/pytorch#42577 (unused parameters), pytorch/pytorch#54318 "
        "(ZeRO), pytorch/pytorch#56755 (SyncBatchNorm)"},
    KindExample{"op_mismatch",
                "rank 0:     barrier()\n"
                "ranks 1-3:  all_reduce(x)",
                gloo_garbage, nccl_garbage,
                "deepspeedai/DeepSpeed#2993, allenai/allennlp#4693, Lightning-AI/pytorch-lightning#6345"},
    KindExample{"numel_mismatch",
                "rank 0:     all_reduce(1000 elements)\n"
                "ranks 1-3:  all_reduce(1 element)",
                gloo_garbage, nccl_garbage,
                "NVIDIA/nccl#1417, pytorch/pytorch#97191, pytorch/pytorch#113376"},
    KindExample{"dtype_mismatch",
                "rank 0:     all_reduce(float64 x 2)\n"
                "ranks 1-3:  all_reduce(float32 x 2)",
                gloo_garbage, nccl_garbage, "modelscope/ms-swift#9551"},
    KindExample{"reduce_op_mismatch",
                "rank 0:     all_reduce(x, SUM)\n"
                "ranks 1-3:  all_reduce(x, MAX)",
                "Ends without an error, with values that are neither.", "The same.", ""},
    KindExample{"group_args_mismatch",
                "ranks 0-1:  new_group([0, 1])\n"
                "ranks 2-3:  new_group([2, 3])    # every rank has to make both",
                "Members of one number wait for each other under different names: \"Wait timeout\", or a "
                "broken pipe.",
                "new_group's barrier in the store may pass; the first call on the group then hangs or "
                "connects to the "
                "wrong ranks.",
                "pytorch/pytorch#25390, pytorch/pytorch#142356"},
    KindExample{"root_mismatch",
                "rank 0:     broadcast(x, src=0)\n"
                "ranks 1-3:  broadcast(x, src=1)",
                "Everybody waits for another sender, or takes another rank's data.",
                "The kernels hang, or the data come from whoever they believed.", ""},
    KindExample{"split_mismatch",
                "rank 0:  all_to_all_single(input_splits=[1, 1], output_splits=[1, 3])\n"
                "rank 1:  all_to_all_single(input_splits=[1, 1], output_splits=[1, 1])",
                gloo_garbage, "Hangs for some sizes and returns garbage for others.",
                "pytorch/pytorch#117486"},
    KindExample{"root_not_in_group", "group [2, 3]:  broadcast(x, src=0, group)   # src is a global rank",
                "Raises ValueError: the rank is not part of the group.",
                "The same: it is checked before the backend.", "meta-pytorch/torchrec#4601"},
    KindExample{"cpu_tensor", "every rank:  all_reduce(torch.ones(1))      # made without device=",
                "Nothing is wrong there: Gloo works on host memory.",
                "Raises \"No backend type associated with device type cpu\" (\"Tensors must be CUDA and "
                "dense\" in older "
                "versions).",
                "mistralai/mistral-inference#252, torchgeo/terratorch#1004"},
    KindExample{"duplicate_gpu", "ranks 0-1:  torch.cuda.set_device(0); all_reduce(x)",
                "Nothing: CPUs may be shared.",
                "Raises \"Duplicate GPU detected\" in newer versions, and hangs in older ones.",
                "facebookresearch/fairchem#597, yiqiao-yin/deepspeed-course#17"},
    KindExample{
        "stray_device", "rank 1:  barrier() on cuda:1; all_reduce(x on cuda:0)",
        "Nothing: there are no devices.",
        "The second call makes another communicator for the other GPU, alone, and waits for the others.",
        "pytorch/pytorch#124714, ray-project/ray#42751"},
    KindExample{"mispaired",
                "rank 0:  all_gather(metric a); all_gather(metric b)\n"
                "rank 1:  all_gather(metric b); all_gather(metric c)",
                no_check, no_check,
                "huggingface/trl#7310, alan-turing-institute/autocast#386, deepspeedai/DeepSpeed#2343"},
    KindExample{"value",
                "rank 0:  x = 1; all_reduce(x); check x == 3\n"
                "rank 1:  x = 5; all_reduce(x)               # should have given 2",
                no_check, no_check, "pytorch/pytorch#111138, pytorch/pytorch#69031, QwenLM/Qwen3-VL#1971"},
    KindExample{"samples_repeated",
                "rank 0:  DistributedSampler(data, seed=0)\n"
                "rank 1:  DistributedSampler(data, seed=1)",
                "Nothing shows: some of the data are seen by nobody, as many by two ranks.", "The same.",
                "QwenLM/Qwen3-VL#1971, bghira/SimpleTuner#2986"},
    KindExample{"stale_key",
                "attempt 1:  store.set(\"address\", \"a\")\n"
                "attempt 2:  store.get(\"address\")             # before the new one is set",
                "The store returns what is there; the connection to the old address times out.",
                "The same, with ncclUniqueId: init hangs.", "pytorch/pytorch#135712"},
    KindExample{"watchdog_timeout",
                "rank 0:     preprocess for 45 min; barrier()\n"
                "ranks 1-3:  barrier()                       # for 30 min at most",
                "The waiting ranks raise \"Timed out waiting\"; the late one then finds closed connections.",
                "The watchdog ends the job. Nothing says that the late rank was on its way.",
                "JIA-Lab-research/LongLoRA#45, ultralytics/yolov5#4400, vllm-project/speculators#867"},
    KindExample{"read_before_wait", "work = all_reduce(x, async_op=True); print(x); work.wait()",
                "Prints whatever is in x at the moment.",
                "print itself waits for the stream, and not for the call's own stream.", ""},
    KindExample{"write_before_wait", "work = isend(x, 1); x.zero_(); work.wait()", "May send zeros.",
                "The write runs on the current stream while the call reads on its own.", ""},
    KindExample{"free_before_wait", "work = all_reduce(x, async_op=True); del x; y = torch.empty(...)",
                no_streams, "The allocator gives x's memory to y, and the call still writes it.",
                "pytorch/pytorch#188655"},
    KindExample{
        "work_never_completed",
        "rank 0:  all_reduce(x, async_op=True)       # its Work is dropped\n"
        "rank 1:  ends",
        "Nothing, until a later call of the group pairs with it.",
        "The kernel spins to the end of the process; the watchdog may end the job while it shuts down.",
        "pytorch/pytorch#108378"},
    KindExample{"group_not_destroyed",
                "every rank:  new_group([0, 1]); ...; ends without destroy_process_group()",
                "Usually nothing: connections close with the process.",
                "A warning, and now and then a hang or a crash while destructors abort the communicators.",
                "pytorch/pytorch#122358"},
    KindExample{"raised", "rank 0:  raise ValueError(\"bad sample\")     # nobody waits for it",
                "The launcher reports the exception.", "The same.", ""},
    KindExample{"early_termination", "with Join([model], throw_on_early_termination=True):  # uneven inputs",
                "Every rank raises RuntimeError: \"Detected at least one rank that exhausted inputs\".",
                "The same.", "pytorch/pytorch#56755"},
    KindExample{"ops", "while True: all_reduce(x)", "Runs for ever.", "Runs for ever.", of_us},
    KindExample{"simulated_time", "while True: compute(1 h)", "Runs for ever.", "Runs for ever.", of_us},
    KindExample{"output_lines", "while True: print(x)", "Fills the disk.", "Fills the disk.", of_us},
    KindExample{"memory", "rollcall run FILE --timeline, with a program of a billion calls",
                "Nothing: it is the simulation that needs the memory.", "Nothing likewise.", ""},
    KindExample{"pending_calls", "while True: all_reduce(x, async_op=True)  # on one rank",
                "The process runs out of memory.", "The same.", of_us},
    KindExample{"deadline", "rollcall real FILE --deadline 1s, with a program that takes longer",
                "The ranks are stopped.", "The ranks are stopped.", of_us},
    KindExample{"no_fault", "every rank:  all_reduce #8 completed", no_recorder, from_dump, ""},
    KindExample{"straggler", "rank 3 comes to every all_reduce 200 ms after the others", no_recorder,
                "Busy GPUs everywhere: a kernel that waits for its peers looks like one that works.", ""},
    KindExample{"stuck_host",
                "rank 2:     all_reduce #7 completed, nothing since\n"
                "ranks 0-1:  all_reduce #8 started",
                no_recorder, nccl_watchdog, "meta-pytorch/torchrec#4149"},
    KindExample{"early_exit",
                "rank 2:     all_reduce #7 completed; barrier of another group\n"
                "ranks 0-1:  all_reduce #8 started",
                gloo_timeout, nccl_watchdog, "pytorch/pytorch#38174"},
    KindExample{"stuck_device",
                "rank 2:     all_reduce #8 scheduled, never started\n"
                "ranks 0-1:  all_reduce #8 started",
                no_recorder, nccl_watchdog, ""},
    KindExample{"crashed_rank",
                "rank 2:     no dump\n"
                "ranks 0-1:  all_reduce #8 started",
                "\"Connection closed by peer\" on the others.", nccl_watchdog, "microsoft/infinibatch#17"},
    KindExample{"partial_subgroup",
                "group [0, 2]:  rank 0 started all_reduce #0, rank 2 does not list the group", gloo_timeout,
                nccl_watchdog, "pytorch/pytorch#25390"},
    KindExample{"cross_group_deadlock",
                "rank 0:  tp #4 started, dp #2 scheduled\n"
                "rank 1:  dp #2 started, tp #4 scheduled",
                gloo_timeout, nccl_watchdog, "NVIDIA/nccl#899, ROCm/rccl#2191"},
    KindExample{"p2p_mismatch",
                "rank 0:  send #3 to 1 started\n"
                "rank 1:  send #3 to 0 started",
                gloo_timeout, nccl_watchdog, "pytorch/pytorch#172668"},
    KindExample{"op_type_mismatch",
                "rank 0:  #8 is a barrier\n"
                "rank 1:  #8 is an all_reduce",
                gloo_garbage, nccl_garbage, "deepspeedai/DeepSpeed#2993"},
    KindExample{"size_mismatch",
                "rank 0:  all_reduce #8 of [[1000]]\n"
                "rank 1:  all_reduce #8 of [[1]]",
                gloo_garbage, nccl_garbage, "NVIDIA/nccl#1417"},
    KindExample{"skipped_collective",
                "rank 0:  a, b, c\n"
                "rank 1:  a, c",
                gloo_garbage, nccl_garbage, "facebookresearch/optimizers#149"},
    KindExample{"extra_collective",
                "rank 0:  a, log, b\n"
                "rank 1:  a, b",
                gloo_garbage, nccl_garbage, "Lightning-AI/pytorch-lightning#6345"},
    KindExample{"desync_after_exception",
                "rank 0:  a, b, a, b\n"
                "rank 1:  a, b, c",
                gloo_garbage, nccl_garbage, "facebookresearch/fairseq#3989"},
    KindExample{"join_shadow_mismatch",
                "rank 0 (joined):  all_reduce(1000)\n"
                "rank 1:           all_gather(32)",
                gloo_garbage, nccl_garbage, "pytorch/pytorch#44425"},
    KindExample{"stall_all_arrived", "every rank:  all_reduce #8 started, the same call, none completed",
                gloo_timeout, nccl_watchdog, ""},
};

}  // namespace

const KindExample* find_example(std::string_view word) {
  const auto* const found = std::ranges::find(examples, word, &KindExample::word);
  return found == examples.end() ? nullptr : found;
}

}  // namespace rollcall::viz
