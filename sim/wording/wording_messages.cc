#include "sim/wording/wording_messages.h"

#include <fmt/format.h>

#include "sim/c10d/backend_traits.h"
#include "sim/match/naming.h"

namespace rollcall::check {

void word_unmatched(const Evidence& evidence, const RankSet& gone, Finding& finding) {
  const Call& call = finding.at->call;
  const bool sends = call.op == "send";
  const std::string waiting = ranks_phrase(finding.at->waiting);
  const std::string other = call.peer < 0 ? std::string("anyone") : fmt::format("rank {}", call.peer);
  finding.headline =
      sends ? fmt::format("nobody receives what {} sends to {} ({})", waiting, other, call_phrase(call))
            : fmt::format("nobody sends what {} receives from {} ({})", waiting, other, call_phrase(call));
  finding.cause =
      fmt::format("{} finished without the matching {}", ranks_phrase(gone), sends ? "recv" : "send");
  finding.advice = sends
                       ? "post one recv for every send, with the same group, tag and order; or drop the send"
                       : "post one send for every recv, with the same group, tag and order; or drop the recv";
  finding.on_backend = traits_of(evidence.backend).texts.lost_message;
}

void word_message_cycle(bool mixes_batches, Finding& finding) {
  if (mixes_batches) {
    finding.cause =
        "one message is in a batch_isend_irecv and the other is not, so they never meet: a batch travels on "
        "the "
        "communicator of the group, other messages on one of the two ranks' own";
    finding.advice =
        "issue both ends through batch_isend_irecv, or neither; or give init_process_group a device_id, so "
        "that both "
        "use the communicator of the group";
  } else if (finding.kind == "send_send") {
    finding.cause =
        "every rank of the circle sends first, and a send completes only when its receive is posted";
    finding.advice =
        "let one side receive first, or issue both through batch_isend_irecv (isend and irecv on Gloo)";
  } else if (finding.kind == "recv_recv") {
    finding.cause = "every rank of the circle receives first, so nobody gets as far as its send";
    finding.advice =
        "let one side send first, or issue both through batch_isend_irecv (isend and irecv on Gloo)";
  } else {
    finding.cause = "the ranks issue their calls in orders that do not fit together";
    finding.advice = "order them alike on both sides, or issue them through batch_isend_irecv";
  }
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
