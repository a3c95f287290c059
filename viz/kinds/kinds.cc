#include "viz/kinds/kinds.h"

#include <algorithm>
#include <vector>

#include "sim/report/finding_kinds.h"
#include "viz/base/text_page.h"
#include "viz/kinds/kind_examples.h"

namespace rollcall::viz {

namespace {

constexpr Explanation table[] = {
    {"ok", "", "every rank finished",
     "Every rank ran to the end of its program, and every collective paired calls that belong together.",
     "Nothing is wrong. Where `exhaustive` is true this holds for every schedule, not only for the one "
     "that was run.",
     "Nothing to do."},

    {"deadlock", "", "ranks wait for ranks that will never come",
     "Some ranks wait in a collective, and no rank that could end the wait can move any more. This is a "
     "proof, not a timeout: the real job would sit there until its watchdog kills it.",
     "The ranks do not make the same calls in the same order: one stopped early, skipped a call, or made "
     "its calls in another order.",
     "Look at the kind for which of these it is, and at `missing` for who has to come."},
    {"missing_participant", "deadlock", "a rank never makes the call the others wait in",
     "A member of the group ended its program, or waits elsewhere for something that will not happen, "
     "without ever making the call the others are in.",
     "A different number of inputs or batches per rank, a collective inside `if rank == 0`, an early "
     "`break` or `return` on one rank, or a call that depends on local data.",
     "Make the number of calls equal on all ranks: wrap a loop over uneven inputs in Join, move the "
     "collective out of the condition, or decide together (all_reduce the condition first)."},
    {"rank_crashed", "deadlock", "a rank raised, and the others wait for it",
     "An exception ended one rank's program. Its peers know nothing of it and wait in the next collective.",
     "Whatever the exception says. The hang is only its shadow, although in a real job the hang is what is "
     "noticed.",
     "Mend what raised. So that a crash ends a job at once, let the launcher kill the other ranks "
     "(torchrun does) and do not catch the exception around collectives."},
    {"unmatched_send", "deadlock", "nobody receives what a rank sends",
     "A rank waits in a send whose receiver ended its program without the matching recv.",
     "One recv too few, another group, tag or source than the send names, or a receiver that left early.",
     "Post one recv for every send, with the same group, tag and order."},
    {"unmatched_recv", "deadlock", "nobody sends what a rank receives",
     "A rank waits in a recv whose sender ended its program without the matching send.",
     "One send too few, another group, tag or destination than the recv expects, or a sender that left "
     "early.",
     "Post one send for every recv, with the same group, tag and order."},
    {"wrong_peer", "deadlock", "a message goes to, or is expected from, another rank than the other end says",
     "A send that nobody receives and a recv that nobody sends are one mistake: with another rank, tag or "
     "group in one "
     "call the two would meet. Named is the rank that makes that call; both ends where only the tag or the "
     "group differs.",
     "A dst or src that is computed wrongly on one rank: at the ends of a pipeline, after ranks were left "
     "out, a local "
     "rank for a global one, or a tag that both ends count by themselves.",
     "Compute dst and src by one function from the rank's own number, or give both ends the same tag and "
     "group."},
    {"send_send", "deadlock", "ranks send to each other before they receive",
     "Ranks wait for each other in a circle of sends. A send completes only when its receive is posted; no "
     "backend promises to buffer.",
     "Neighbours that exchange data with send first and recv second on both sides.",
     "Let one side receive first, or issue both through batch_isend_irecv (isend and irecv on Gloo)."},
    {"recv_recv", "deadlock", "ranks receive from each other before they send",
     "Ranks wait for each other in a circle of receives, so none of them gets as far as its send.",
     "Neighbours that exchange data with recv first and send second on both sides.",
     "Let one side send first, or issue both through batch_isend_irecv (isend and irecv on Gloo)."},
    {"p2p_order", "deadlock", "sends and receives are issued in orders that do not fit",
     "Ranks wait for each other in a circle of sends and receives. On NCCL everything between two ranks is "
     "one queue, so a send can wait behind another message.",
     "Pipeline stages that post their messages in different orders.",
     "Order them alike on both sides, or issue them through batch_isend_irecv."},
    {"order_crossing", "deadlock", "ranks make the same calls in different orders",
     "Ranks wait for each other in a circle: each is inside a collective of one group that another rank "
     "reaches only after the collective of a second group it is inside itself.",
     "Two groups used in a different order on different ranks, for instance while iterating over a set or "
     "a dictionary, or from two threads.",
     "Give the calls one order on all ranks: sort what is iterated over, issue from one thread."},
    {"store_never_served", "deadlock", "ranks wait for a key that nobody sets",
     "A rank waits in store.get or store.wait for a key, and no rank that could set it can move any more.",
     "The rank that should set the key ended first, or waits for it itself; another spelling or prefix of "
     "the "
     "key; a flag that makes every process a client of the store and none its server.",
     "Let one rank set the key before anybody waits for it."},
    {"store_cycle", "deadlock", "ranks wait for each other through the store",
     "Some ranks wait for a key, and all that could set it wait for those ranks in a collective, a message "
     "or "
     "for another key.",
     "A key that is set after a collective and waited for before it; a hidden synchronisation between two "
     "calls.",
     "Set the key before the call that needs the others, or wait for it after that call."},
    {"join_hook_mismatch", "deadlock, mismatch, wrong_result",
     "a joined rank shadows other collectives than are made",
     "Inside Join, a rank without inputs repeats main_hook() once for every iteration of the others. Its "
     "collectives do not match those that the active ranks make.",
     "main_hook makes fewer or more calls than the joinable's own iteration, other ones, or in another "
     "order; or the joinable does not call notify_join_context once before its collectives; or post_hook "
     "communicates on some ranks only.",
     "Write main_hook as the iteration's list of collectives, call for call, with the same group, size, "
     "dtype and operation, and call Join.notify_join_context(self) once per iteration before the first of "
     "them."},

    {"mismatch", "", "ranks met in one collective with calls that do not fit",
     "All calls of one slot of a group arrived, but they do not describe the same collective. Real "
     "backends do not check this: they hang, crash, or return garbage.",
     "The ranks' programs differ at this place, or they have been shifted against each other since an "
     "earlier one.",
     "Compare the calls in the table; the underlined columns differ. Then look where the ranks parted: "
     "`first divergence`, or TORCH_DISTRIBUTED_DEBUG=DETAIL in a real job."},
    {"op_mismatch", "mismatch", "different collectives in one slot",
     "Ranks called different functions, say all_reduce and broadcast, as the same numbered call of a group.",
     "Collectives swapped on some rank, or one call too many or too few on some rank earlier.",
     "Make all ranks issue the same sequence of calls on each group."},
    {"numel_mismatch", "mismatch", "different sizes in one slot",
     "Ranks gave tensors with different numbers of elements where the collective needs equal ones.",
     "A last, smaller batch; a sequence padded to its own rank's longest; parameters that exist on some "
     "ranks only.",
     "Pad to a common size, or exchange the sizes first; drop_last=True in the sampler where batches may "
     "be lost."},
    {"dtype_mismatch", "mismatch", "different element types in one slot",
     "Ranks gave tensors of different dtypes.",
     "Mixed precision enabled on some ranks only, or a Python number that became int64 here and float32 "
     "there.",
     "Give the dtype explicitly where the tensor is made."},
    {"reduce_op_mismatch", "mismatch", "different reductions in one slot",
     "Ranks asked for different reductions, say SUM and MAX.",
     "A condition on local data or on the rank around the operation.",
     "Use one reduction on all ranks; average with AVG or divide by the world size afterwards."},
    {"group_args_mismatch", "mismatch", "ranks make different groups in one call",
     "The ranks' new_group (or split_group) calls of one number name different lists of ranks.",
     "A group made inside a branch that only its members take; groups made in different orders.",
     "Make every group on all ranks, members or not, in one order."},
    {"root_mismatch", "mismatch", "different roots in one slot",
     "Ranks named different ranks as source or destination.",
     "The root was computed locally, or is a rank inside the group where a global rank is meant.",
     "Name the same global rank everywhere; translate with get_global_rank where the group is a subgroup."},
    {"split_mismatch", "mismatch", "a rank expects other parts than it is sent",
     "In an all_to_all, what one rank sends to another is not as much as the other expects from it.",
     "Split sizes computed on each rank from its own data, and never exchanged.",
     "Exchange the split sizes first: an all_to_all_single of the counts, then one of the data."},
    {"root_not_in_group", "mismatch", "the root is no member of the group",
     "src or dst names a rank that the group does not contain. Both are global ranks, in every group.",
     "A rank inside the group, usually 0, where the global rank is meant.",
     "Translate with get_global_rank(group, 0), or pick the root from the group's list of ranks."},

    {"device_mismatch", "", "a tensor is on a device the collective cannot use",
     "A collective was called with a tensor on a device that its backend or its group cannot work with.",
     "The tensor was made on the wrong device, or the process did not choose its GPU.",
     "Call torch.cuda.set_device(local_rank) first, and make tensors on the rank's device."},
    {"cpu_tensor", "device_mismatch", "a CPU tensor in a GPU collective",
     "The backend moves GPU memory only, and a rank gave it a tensor in host memory.",
     "A tensor made without device=, often a metric or a flag.",
     "Move the tensor to the rank's device, or use a gloo group for CPU tensors."},
    {"duplicate_gpu", "device_mismatch", "two ranks use one GPU",
     "Two members of a group on one host gave tensors on the same GPU. NCCL refuses that.",
     "No set_device(local_rank), so that every process uses cuda:0; or more processes than GPUs.",
     "Give each process its own GPU."},
    {"stray_device", "device_mismatch", "a rank changed its device for a group",
     "A rank used a group with a tensor on another device than before. Its communicator belongs to the "
     "first one.",
     "A hard-coded cuda:0, or a device guessed from the rank where the local rank is meant.",
     "Make all tensors for a group on the rank's own device; in Join, give all joinables the same "
     "join_device."},

    {"wrong_result", "", "the run ends, with a result that is not what was meant",
     "Nothing hung and nothing was refused, but calls from different places of the program were paired, or "
     "a value is not the one the program checks for.",
     "Calls of equal operation, size and type look alike to every backend; a shifted rank goes unnoticed.",
     "Look at the first divergence."},
    {"mispaired", "wrong_result", "calls from different places met in one slot",
     "A collective paired calls with different labels. They fit in operation, size and type, so every "
     "backend accepts them and mixes unrelated data.",
     "A rank skipped or repeated a call whose neighbours look the same.",
     "Make all ranks issue the same sequence; separate unrelated traffic by groups."},
    {"value", "wrong_result", "a tensor does not hold what the program expects",
     "A check of the program found another value in a tensor.",
     "Mispaired calls, a missing reduction, ranks counted that have joined already, or a wrong expectation.",
     "Follow the value back through the collectives that wrote it; --trace shows them."},
    {"stale_shard", "wrong_result", "a joined rank updates its shard with gradients of the past",
     "Under Join, the main_hook of ZeroRedundancyOptimizer is step(): a rank without inputs goes on updating "
     "the "
     "parameters of its shard, and broadcasts them to everyone. DDP's shadowing wrote no gradients there, so "
     "it steps with those of its own last iteration, with zeros, or not at all.",
     "DistributedDataParallel and ZeroRedundancyOptimizer in one Join, as in PyTorch's tutorial, with uneven "
     "inputs.",
     "Even the inputs out with a DistributedSampler, end all ranks together with "
     "throw_on_early_termination=True, or use an optimizer on every rank instead of a sharded one."},

    {"samples_repeated", "wrong_result", "ranks see each other's samples, and nobody sees others",
     "The ranks' samplers shuffle with different seeds, so that the parts they take overlap. Nothing hangs.",
     "A seed that holds the rank, a list that is shuffled with each rank's own random state before the "
     "sampler cuts it, "
     "or a sampler state that was restored from another rank's file.",
     "The same seed on every rank, set_epoch with the same number, and a list in the same order."},
    {"stale_key", "wrong_result", "a key of the store still had an old value",
     "A rank read a key and got another value than the one it relies on.",
     "A store that outlives an attempt, with keys that are the same in the next one.",
     "Give every attempt a prefix of its own, or delete keys that have been read."},

    {"race", "", "timing decides what the run comes to",
     "Nothing has to go wrong, but it can: the order of events that the program leaves open decides. A race "
     "with the kind of another verdict is one that some schedules end in.",
     "A tensor used while a call still works on it, threads that issue collectives in an order of their own, "
     "a decision that depends on when something arrives, a limit on waiting.",
     "Order the two by the program: wait for the call, decide on one rank and tell the others."},
    {"watchdog_timeout", "race", "a slow rank passes the limit on waiting",
     "Nobody is missing: every rank makes the call. But some wait in it for longer than the group's timeout "
     "while another one is busy, and the backend takes that for a hang.",
     "Work on one rank only (downloads, preprocessing, validation, saving) before a collective; very uneven "
     "shares of work.",
     "Raise the timeout of the group, split the work, or let the others wait for a key of the store."},
    {"read_before_wait", "race", "a tensor is read before its call is waited for",
     "An asynchronous collective, or a receive, may still be writing a tensor that the program reads.",
     "A forgotten wait(), or one on another handle.", "Wait for the call before the tensor is read."},
    {"write_before_wait", "race", "a tensor is written before its call is waited for",
     "The program writes a tensor that an asynchronous call may still be reading or writing.",
     "Buffers that are used again for the next message before the last one has left.",
     "Wait for the call before the tensor is written, or take turns with two buffers."},
    {"free_before_wait", "race", "a tensor is given up before its call is waited for",
     "The program gives up the memory of a tensor that an asynchronous call still works on.",
     "Tensors that only the call refers to, on a stream that was never ordered after it.",
     "Keep the tensor until the call was waited for; record_stream where streams differ."},

    {"resource_leak", "", "the run leaves something behind that nobody can use or end",
     "Every rank finished, and something is left: a call under way, a group that still exists.",
     "Asynchronous calls whose handle was dropped; groups left to destructors.",
     "Wait for every call and destroy every group, on all its ranks."},
    {"work_never_completed", "resource_leak", "an asynchronous call that can never complete",
     "Some ranks issued a call that the others never made, and dropped its handle. Nothing hangs, because "
     "nobody waits.",
     "A collective or a message too many, hidden by async_op.",
     "Wait for every asynchronous call, so that a missing partner is noticed where it is missing."},
    {"group_not_destroyed", "resource_leak", "a group was never destroyed",
     "Ranks ended without destroy_process_group for a group they are in. Asked for by `check_leaks`.",
     "A script without clean-up. With NCCL the communicators are then torn down by destructors, in any "
     "order.",
     "Call destroy_process_group() at the end of every rank's program."},

    {"rank_failed", "", "a rank raised, and nothing else went wrong",
     "A rank's program ended with an exception, while no other rank was left waiting for it.",
     "The exception says it.", "Mend what raised."},
    {"raised", "rank_failed", "an exception ended a rank's program",
     "The program raised, or called into torch.distributed in a way that raises.",
     "The exception's text is PyTorch's where PyTorch raises.", "Mend what raised."},
    {"early_termination", "rank_failed", "Join ended the run because a rank ran out of inputs",
     "Under throw_on_early_termination every rank raises as soon as one has used up its inputs.",
     "Uneven inputs, and the wish to stop then. Usually this is as intended.",
     "Catch the RuntimeError around the Join where stopping early is right; otherwise leave the option off."},

    {"limit_reached", "", "the run was stopped by a limit",
     "The scenario's limits ended the run before anything else did. It was neither finished nor stuck.",
     "A loop that does not end, or limits that are too small for the scenario.",
     "Look at where the ranks are; raise `limits` if that is where they should be."},
    {"ops", "limit_reached", "more calls than allowed",
     "All ranks together issued as many calls and loop iterations as `limits.ops` allows.",
     "An endless loop, most often.", "End the loop, or raise limits.ops."},
    {"simulated_time", "limit_reached", "more simulated time than allowed",
     "Simulated time reached `limits.simulated_time`.",
     "A loop around compute that does not end, or durations with a wrong unit.",
     "End the loop, or raise limits.simulated_time."},
    {"output_lines", "limit_reached", "more printed lines than a report holds",
     "All ranks together printed a million lines.", "A loop that prints and does not end.",
     "End the loop, or print less often."},
    {"memory", "limit_reached", "more memory than rollcall may take",
     "The simulation reached `limits.memory`, or without one most of what the machine had left when it "
     "began.",
     "Many ranks, tensors whose elements differ, calls that nobody waits for, a timeline of a long run.",
     "Simulate fewer ranks or smaller tensors; leave out --timeline, --trace and pages; raise "
     "limits.memory."},
    {"pending_calls", "limit_reached", "more calls under way than memory holds",
     "A rank ran far ahead of the others: millions of its asynchronous calls wait for their partners.",
     "Asynchronous calls in a loop that never waits for them.", "Wait for the calls, or end the loop."},

    {"no_fault", "", "recordings that show nothing wrong (diagnose)",
     "Every recorded call is finished, or nothing shows that time passed since the last one.",
     "A dump on demand of a healthy job, or a dump taken before the hang.",
     "Nothing to do; where the job does hang, dump again later and compare."},
    {"straggler", "", "the others regularly wait for one rank (diagnose)",
     "Nothing hangs, but the same rank comes last to call after call, and waits for nobody itself.",
     "A slow device or host: heat, another process, slower storage, more work than its peers.",
     "Compare its clocks, data loading and batch sizes with those of a fast rank."},
    {"stuck_host", "", "a rank does not come to a call (diagnose)",
     "A rank has finished all it issued and issues nothing more; the others wait for it.",
     "A data loader, a lock, the garbage collector, a file system, an endless loop, or the end of its data.",
     "Take a host stack of that rank (py-spy)."},
    {"early_exit", "", "a rank left the loop before the others (diagnose)",
     "Like stuck_host, which looks the same in a dump: the rank's program went on past the loop.",
     "Fewer batches on that rank, an early stop decided locally.",
     "Wrap the loop in Join, or decide together when to stop."},
    {"stuck_device", "", "a rank's device does not get to a call (diagnose)",
     "The call was issued on every rank and started on all but one, or all but one know that it finished.",
     "A kernel before it that never ends, a wait on another stream, a device error.",
     "Look at device errors and at the kernels before that call on that rank."},
    {"crashed_rank", "", "a rank left no dump, and everybody waits for it (diagnose)",
     "All waits lead to a rank whose process wrote nothing.",
     "An exception outside the watched threads, a signal, the out-of-memory killer, a dead node.",
     "Read its log; make sure its dump was not merely lost."},
    {"partial_subgroup", "", "a member never used its group (diagnose)",
     "The group is missing in the pg_config of one of its members, and the others wait in it.",
     "new_group inside a branch, or in different orders on different ranks.",
     "Create groups on every rank, in one order, and use them on every member."},
    {"cross_group_deadlock", "", "ranks use their groups in different orders (diagnose)",
     "Ranks wait for each other in a circle over several groups, each behind a call the other has not "
     "reached.",
     "A collective on one group issued eagerly on some ranks and lazily on others.",
     "Issue the collectives of different groups in the same order on every rank."},
    {"p2p_mismatch", "", "sends and receives do not fit (diagnose)",
     "A message has no other end, another size, or its two ends are posted in orders that block each other.",
     "Pipeline stages with different numbers of micro-batches, a wrong peer, a wrong shape.",
     "Post one recv for every send, between the same ranks, in the same order, with the same size."},
    {"op_type_mismatch", "", "different collectives met (diagnose)",
     "The ranks are in the same call of a group by number, and in different ones by name.",
     "A branch on the rank or on local data around a collective.", "Make the same calls on every rank."},
    {"size_mismatch", "", "different sizes met (diagnose)",
     "The ranks are in the same collective with different shapes.",
     "Local batch sizes, a last incomplete batch, a parameter frozen on one rank only.",
     "Pad or agree on the size first."},
    {"skipped_collective", "", "a rank left a call out (diagnose)",
     "From some call on, a rank's calls are those the others make later.",
     "A collective inside a condition that is false on one rank.",
     "Move the collective out of the condition, or decide together."},
    {"extra_collective", "", "a rank made a call of its own (diagnose)",
     "From some call on, a rank's calls are those the others make earlier.",
     "Logging or metrics on one rank that communicate; an async call that nobody waits for.",
     "Make the call on all ranks or on none."},
    {"desync_after_exception", "", "a rank repeated its calls (diagnose)",
     "A rank made the calls of a step twice, the others once.",
     "An exception caught on one rank, which starts its step again.",
     "Let all ranks agree to repeat a step, or let the job fail."},
    {"join_shadow_mismatch", "", "Join's shadow calls differ from the real ones (diagnose)",
     "A rank that ran out of inputs shadows the others' calls with other ones.",
     "A main_hook that does not repeat exactly the collectives of one iteration.",
     "Make the hook issue the same calls, in the same order."},
    {"stall_all_arrived", "", "all came with the same call, and nothing moves (diagnose)",
     "Every member issued the call with equal arguments and none finishes it.",
     "The network, a link, the communication library; without start events also a stuck device or a wrong "
     "root.",
     "Check links and devices of these ranks; record when calls start (TORCH_NCCL_ENABLE_TIMING)."},
    {"deadline", "limit_reached", "a real run was stopped by its deadline",
     "Real ranks were still at work when their time was up. That is no proof of a hang: somebody could still "
     "have moved.",
     "A deadline that is too short for the program or the machine, or a loop that does not end.",
     "Look at where the ranks are; give the run a longer --deadline."},
};

void put_overview_row(std::vector<Row>& rows, const Explanation& entry) {
  const bool is_verdict = entry.verdicts.empty();
  rows.push_back({(is_verdict ? "" : "  ") + std::string(entry.word), std::string(entry.title),
                  is_verdict ? Look::strong : Look::plain});
}

}  // namespace

std::span<const Explanation> explanations() { return table; }

const Explanation* find_explanation(std::string_view word) {
  const std::optional<FindingKind> kind = parse_finding_kind(word);
  word = kind ? to_string(*kind) : word;
  const auto* entry = std::find_if(std::begin(table), std::end(table),
                                   [word](const Explanation& candidate) { return candidate.word == word; });
  return entry == std::end(table) ? nullptr : entry;
}

std::string explanation_text(const Explanation& entry, bool color) {
  TextPage page(color);
  page.headline(entry.word, Look::error, entry.title);
  page.frame_line();
  page.frame_rows({{"", std::string(entry.meaning)}});
  page.frame_line();
  if (!entry.verdicts.empty()) {
    page.note("verdict", entry.verdicts);
  }
  const KindExample* example = find_example(entry.word);
  if (example != nullptr) {
    page.note("example", example->example);
  }
  page.note("typical cause", entry.cause);
  page.note("help", entry.advice);
  if (example != nullptr) {
    page.note("on gloo", example->on_gloo);
    page.note("on nccl", example->on_nccl);
    if (!example->reports.empty()) {
      page.note("reports", example->reports);
    }
  }
  return page.text();
}

std::string explanations_overview(bool color) {
  TextPage page(color);
  std::vector<Row> rows;
  for (const Explanation& entry : table) {
    put_overview_row(rows, entry);
  }
  page.rows(rows, 0);
  return page.text();
}

}  // namespace rollcall::viz
