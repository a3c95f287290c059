#include "sim/wording/wording_ranks.h"

#include <fmt/core.h>

#include "sim/match/naming.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {
namespace {

struct TouchWords {
  FindingKind kind;
  const char* done;   // to the tensor, by the program
  const char* doing;  // with it, by the call
};

constexpr TouchWords touch_words[] = {{FindingKind::read_before_wait, "read", "writing"},
                                      {FindingKind::write_before_wait, "written", "working on"},
                                      {FindingKind::free_before_wait, "freed", "working on"}};

}  // namespace

void word_checks(const std::vector<TensorPlace>& values, const RankSet& outside, Finding& finding) {
  const TensorPlace& first = values.front();
  finding.headline =
      fmt::format("{} on {} is {}, not {}", first.tensor, ranks_phrase(first.ranks), first.got, first.want);
  if (values.size() > 1) {
    const TensorPlace& second = values[1];
    finding.headline += fmt::format("; on {} it is {}{}", ranks_phrase(second.ranks), second.got,
                                    values.size() > 2 ? ", and so on" : "");
  }
  if (!outside.empty()) {
    finding.cause =
        fmt::format("{} a collective of a group that {} not belong to: it returned and did nothing",
                    with_verb(outside, "called", "called"), is_plural(outside) ? "they do" : "it does");
    finding.advice = "pass the group that the calling ranks are members of";
  } else {
    finding.cause =
        "no collective that ran gives this value: one is missing on these ranks, reduces over another group, "
        "or combined tensors that do not belong together";
    finding.advice = "follow the tensor back through the calls that wrote it; --trace shows them";
  }
  finding.on_backend = "completes without an error, with this value";
}

void word_touches(const std::vector<TensorPlace>& touched, Finding& finding) {
  const TensorPlace& first = touched.front();
  const TouchWords& words = row_of(touch_words, finding.kind);
  const Call& call = finding.at->call;
  const std::string by = first.by.empty() ? "" : " by " + first.by;
  finding.on_backend = "nothing notices: the values depend on which of the two comes first";
  if (!first.ordered.empty()) {
    finding.headline =
        fmt::format("'{}' on {} is {}{} on stream '{}', which does not wait for {}", first.tensor,
                    ranks_phrase(finding.culprits), words.done, by, first.unordered, call_phrase(call));
    finding.cause = fmt::format("only stream '{}' has waited for {}{}, which may still be {} the tensor",
                                first.ordered, call.op, origin_of(call), words.doing);
    finding.advice = fmt::format(
        "let stream '{}' wait for stream '{}' (wait_stream, or an event), or wait for the call there",
        first.unordered, first.ordered);
    return;
  }
  finding.headline = fmt::format("'{}' on {} is {}{} before {} is waited for", first.tensor,
                                 ranks_phrase(finding.culprits), words.done, by, call_phrase(call));
  finding.cause = fmt::format("{}{} was issued with async_op and may still be {} the tensor", call.op,
                              origin_of(call), words.doing);
  if (!first.by.empty()) {
    finding.advice =
        first.handle.empty()
            ? "wait for the earlier call first, or give each call a tensor of its own"
            : fmt::format("wait for the handle '{}' first, or give each call a tensor of its own",
                          first.handle);
    return;
  }
  finding.advice = first.handle.empty()
                       ? "keep what the call returns, and wait for it before the tensor is used"
                       : fmt::format("wait for the handle '{}' before the tensor is used", first.handle);
}

void word_stale_shards(const std::vector<TensorPlace>& values, Finding& finding) {
  const TensorPlace& first = values.front();
  const RankSet& joined = finding.culprits;
  finding.headline =
      fmt::format("joined {} {} of {} with old gradients: {} is {}", ranks_phrase(joined),
                  is_plural(joined) ? "keep updating their shards" : "keeps updating its shard", first.handle,
                  first.tensor, first.got);
  finding.cause = fmt::format(
      "main_hook of {} is step(): {} once per iteration of the others, but DDP's shadowing only sends zeros "
      "and writes no gradients there; all ranks then take these parameters from {}",
      first.handle,
      is_plural(joined) ? "joined ranks update their shards" : "a joined rank updates its shard",
      is_plural(joined) ? "them" : "it");
  finding.advice =
      "give every rank the same number of inputs (DistributedSampler), stop all ranks at once "
      "(throw_on_early_termination=True), or let every rank update all parameters with an optimizer of its "
      "own";
  finding.on_backend = "nothing notices: training continues with these parameters on every rank";
}

void word_roots(const Evidence& evidence, const Observation& what, Finding& finding) {
  const Call& call = finding.at->call;
  const GroupMembers& members = *evidence.groups[what.op.group].members;
  finding.headline =
      fmt::format("{} {} on {} with root {}, which is not a member",
                  with_verb(finding.culprits, "calls", "call"), call.op, call.group, what.root);
  finding.cause = fmt::format("{} consists of {}; src and dst are global ranks, and {} is not one of them",
                              call.group, ranks_phrase(RankSet::of(members.ranks)), what.root);
  finding.advice =
      fmt::format("name a global rank of the group: get_global_rank(group, 0) is its first, here rank {}",
                  members.ranks.front());
  finding.on_backend = "raises on every rank of the group";
}

void word_second_wait(Finding& finding) {
  finding.headline = fmt::format("{} a second time for {}", with_verb(finding.culprits, "waits", "wait"),
                                 call_phrase(finding.at->call));
  finding.cause =
      "the first wait has used up the message's completion, and there is nothing left to wait for";
  finding.advice = "wait for each handle of a message once; is_completed() may be called at any time";
  finding.on_backend = "the second wait() hangs until the group's timeout, though the message has arrived";
}

void word_dropped_message(bool is_send, Finding& finding) {
  finding.headline =
      fmt::format("{} go of the handle of {} before {}", with_verb(finding.culprits, "lets", "let"),
                  call_phrase(finding.at->call), is_send ? "its receiver has come" : "its message has come");
  finding.cause =
      fmt::format("nothing waited for the handle that {}{} returned, and its rank did not keep it until then",
                  finding.at->call.op, origin_of(finding.at->call));
  finding.advice =
      "keep what the call returns, and wait for it; all handles of a loop, and not only the last";
  finding.on_backend =
      is_send ? "the message is taken back unless its receiver came first, and the receiver hangs"
              : "the message that comes has nowhere to go, and the two ranks' connection is stuck";
}

void word_left_handles(Finding& finding) {
  const std::string call = call_phrase(finding.at->call);
  finding.headline =
      is_plural(finding.culprits)
          ? fmt::format("{} end without waiting for asynchronous calls, the first of them {}",
                        ranks_phrase(finding.culprits), call)
          : fmt::format("{} ends without waiting for {}", ranks_phrase(finding.culprits), call);
  finding.cause = "the call was issued with async_op, and no rank has checked whether it is done";
  finding.advice = "keep what the call returns, and wait for it before the rank ends";
  finding.on_backend =
      "a message whose handle is dropped is withdrawn, and its other end hangs or finds the connection "
      "closed";
}

void word_open_calls(std::size_t calls, Finding& finding) {
  const Place& place = *finding.at;
  finding.headline = fmt::format("{} of {} never completes, and no rank waits for it",
                                 call_phrase(place.call), ranks_phrase(place.waiting));
  finding.cause =
      fmt::format("{} not make this call, and its handle on {} was dropped{}",
                  with_verb(place.missing, "does", "do"), ranks_phrase(place.waiting),
                  calls > 1 ? fmt::format("; {} more calls are left the same way", calls - 1) : "");
  finding.advice =
      "wait for every asynchronous call, so that a missing partner is noticed where it is missing";
  finding.on_backend =
      "the call's buffers and its place in the communicator are never released: the next calls hang behind "
      "it, or destroy_process_group does";
}

}  // namespace rollcall::check
