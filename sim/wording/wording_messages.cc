#include "sim/wording/wording_messages.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/c10d/backend_traits.h"
#include "sim/match/naming.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

void word_unmatched(const Evidence& evidence, const RankSet& gone, Finding& finding) {
  const Call& call = finding.at->call;
  const bool sends = call.op == "send";
  const std::string waiting = ranks_phrase(finding.at->waiting);
  const std::string other = call.peer < 0 ? std::string("anyone") : fmt::format("rank {}", call.peer);
  finding.headline =
      sends ? fmt::format("no rank receives what {} sends to {} ({})", waiting, other, call_phrase(call))
            : fmt::format("no rank sends what {} receives from {} ({})", waiting, other, call_phrase(call));
  finding.cause =
      fmt::format("{} finished without the matching {}", ranks_phrase(gone), sends ? "recv" : "send");
  finding.advice = sends
                       ? "post one recv for every send, with the same group, tag and order; or drop the send"
                       : "post one send for every recv, with the same group, tag and order; or drop the recv";
  finding.on_backend = traits_of(evidence.backend).texts.lost_message;
}

void word_uneven_messages(std::size_t met, std::size_t wanted, Finding& finding) {
  const Call& call = finding.at->call;
  const bool sends = call.op == "send";
  finding.cause = fmt::format("rank {} made {} {}{} {} rank {}, and {} in {} number {}", call.peer, met,
                              sends ? "receive" : "send", met == 1 ? "" : "s", sends ? "from" : "to",
                              finding.at->waiting.first(), with_verb(finding.at->waiting, "waits", "wait"),
                              call.op, wanted);
  finding.advice = fmt::format(
      "let both ranks run the same number of iterations, steps and microbatches: no break or continue that "
      "depends on the rank; or drop the extra {}",
      call.op);
}

namespace {

struct CycleWords {
  FindingKind kind;
  const char* cause;
  const char* advice;
};

constexpr CycleWords cycle_words[] = {
    {FindingKind::send_send,
     "every rank of the cycle sends first, and a send completes only when its receive is posted",
     "let one side receive first, or issue both through batch_isend_irecv (isend and irecv on Gloo)"},
    {FindingKind::recv_recv, "every rank of the cycle receives first, so no rank reaches its send",
     "let one side send first, or issue both through batch_isend_irecv (isend and irecv on Gloo)"},
    {FindingKind::p2p_order,
     "the ranks issue their messages in orders that do not fit together, or one end of a message is missing "
     "or names another tag or group",
     "issue both ends of every message, in one order and with one tag and group, or in one "
     "batch_isend_irecv"},
    {FindingKind::order_crossing,  // with collectives in it
     "the ranks issue their calls in orders that do not fit together",
     "issue them in the same order on both sides, or the messages through batch_isend_irecv"},
};

constexpr CycleWords mixed_batches{
    FindingKind::p2p_order,
    "one message is in a batch_isend_irecv and the other is not, so they never meet: a batch travels on the "
    "communicator of the group, other messages on a communicator of the two ranks alone",
    "issue both ends through batch_isend_irecv, or neither; or give init_process_group a device_id, so that "
    "both use the communicator of the group"};

constexpr CycleWords behind_sends{FindingKind::send_send,
                                  "each of the two has an isend to the other ahead of its receive, and "
                                  "messages between two ranks run one after "
                                  "the other: neither receive begins before the other's isend is received. "
                                  "(Messages that fit NCCL's buffers may "
                                  "get through)",
                                  "issue the sends and receives of a step together, through "
                                  "batch_isend_irecv, or let one side receive before it "
                                  "sends"};

}  // namespace

bool is_of_schedule(const Call& call) { return call.label.starts_with("pipeline."); }

void word_schedules(Finding& finding) {
  finding.cause =
      "these messages are torch's own, between the stages of a pipeline; they fit together only if all "
      "stages run the same schedule";
  finding.advice =
      "give every stage the same schedule: the same class, the same n_microbatches and the same number of "
      "steps";
}

void word_message_cycle(MessageCycle cycle, Finding& finding) {
  const CycleWords& words = cycle == MessageCycle::mixed_batches  ? mixed_batches
                            : cycle == MessageCycle::behind_sends ? behind_sends
                                                                  : row_of(cycle_words, finding.kind);
  finding.cause = words.cause;
  finding.advice = words.advice;
}

bool is_behind_sends(const Deadlock& deadlock) {
  return deadlock.finding.kind == FindingKind::send_send &&
         std::ranges::none_of(deadlock.cycle,
                              [](const Place& place) { return place.call.op == to_string(OpKind::send); });
}

void word_message_mismatch(const Evidence& evidence, const Incident& incident, Finding& finding) {
  const OpVariant& first = incident.variants.front();
  const bool sends_first = first.op.kind == OpKind::send;
  const Call send = name_call(evidence, (sends_first ? first : incident.variants.back()).op, incident.seq);
  const Call receive = name_call(evidence, (sends_first ? incident.variants.back() : first).op, incident.seq);
  finding.headline = fmt::format("rank {} sends {} x {} to rank {}, which receives {} x {}", receive.peer,
                                 send.numel, send.dtype, send.peer, receive.numel, receive.dtype);
  finding.cause = "the two ends of a message were given tensors of different size or dtype";
  finding.advice = "give both ends the same size and dtype, or send the size first";
  finding.on_backend = traits_of(evidence.backend).texts.message_mismatch;
}

}  // namespace rollcall::check
