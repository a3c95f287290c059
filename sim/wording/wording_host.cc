#include "sim/wording/wording_host.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/c10d/backend_traits.h"
#include "sim/match/naming.h"
#include "sim/torch/torch_traits.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {
namespace {

// "45 min", "1.5 s": as people write limits.
std::string time_phrase(Duration duration) {
  struct Unit {
    Duration size;
    const char* name;
  };
  for (const Unit& unit : {Unit{60 * second, "min"}, Unit{second, "s"}, Unit{millisecond, "ms"}}) {
    if (duration >= unit.size) {
      const Duration tenths = duration % unit.size * 10 / unit.size;
      const std::string decimals = tenths == 0 ? std::string() : fmt::format(".{}", tenths);
      return fmt::format("{}{} {}", duration / unit.size, decimals, unit.name);
    }
  }
  return fmt::format("{} us", duration / microsecond);
}

std::string keys_phrase(const std::string& keys) {
  return keys.find(", ") == std::string::npos ? "key " + keys : "keys " + keys;
}

std::string quoted(const std::string& text) { return fmt::format("\"{}\"", text); }

}  // namespace

void word_stale_key(const Evidence& evidence, const StoreIncident& incident, Finding& finding) {
  Call call;
  call.label = evidence.scopes->path(incident.op.scope);
  call.site = to_string(incident.op.site);
  finding.headline = fmt::format("rank {} reads {} from key {}, but expects {}", incident.rank,
                                 quoted(incident.got), incident.key, quoted(incident.want));
  finding.cause = fmt::format(
      "the store_get{} came while the key had another value: that of an earlier use, or one that "
      "another rank wrote over it",
      origin_of(call));
  finding.advice =
      "use a key of its own for every attempt or round (a PrefixStore with a counter that all ranks share), "
      "or delete the key when it has been read; count with add, which loses no update";
  finding.on_backend =
      "the store returns what is there; a stale address or id shows later, as a rendezvous that hangs";
}

void word_late(const Evidence& evidence, const TimeoutIncident& incident, Finding& finding) {
  const Call& call = finding.at->call;
  const auto last = std::max_element(incident.came.begin(), incident.came.end());
  finding.on_backend = traits_of(evidence.backend).texts.slow_member;
  if (is_point_to_point(incident.op.kind)) {
    const bool sends = incident.op.kind == OpKind::recv;  // the late rank
    finding.headline = fmt::format("{} {} {} after it has given up ({})", ranks_phrase(finding.culprits),
                                   sends ? "sends to" : "receives from", ranks_phrase(finding.at->waiting),
                                   call_phrase(call));
    finding.cause = fmt::format("no message is missing: {} {} after {}, and the limit of the {}{} is {}",
                                ranks_phrase(finding.culprits), sends ? "sends" : "receives",
                                time_phrase(*last), call.op, origin_of(call), time_phrase(incident.limit));
    finding.advice =
        "give the group a longer timeout (init_process_group, new_group), or move the long work out of the "
        "time in which the other rank waits";
    return;
  }
  finding.headline = fmt::format("{} {} after {} given up", with_verb(finding.culprits, "reaches", "reach"),
                                 call_phrase(call), with_verb(finding.at->waiting, "has", "have"));
  finding.cause =
      fmt::format("no rank is missing: {} {} after {}, and the limit of the {}{} is {}",
                  ranks_phrase(finding.culprits), is_plural(finding.culprits) ? "arrive" : "arrives",
                  time_phrase(*last), call.op, origin_of(call), time_phrase(incident.limit));
  finding.advice =
      fmt::format("give the {}, or move the long work out of the time in which the others wait",
                  call.op == "monitored_barrier" ? "call a longer timeout"
                                                 : "group a longer timeout (init_process_group, new_group)");
}

void word_leaks(const Evidence& evidence, Finding& finding) {
  std::string names;
  for (const Leak& leak : evidence.leaks) {
    names += (names.empty() ? "" : ", ") + group_name(evidence, leak.group);
  }
  const bool several = evidence.leaks.size() > 1;
  finding.headline = fmt::format("{} without destroying {} {}", with_verb(finding.culprits, "ends", "end"),
                                 several ? "groups" : "group", names);
  finding.cause = fmt::format("destroy_process_group was not called for {}", several ? "them" : "it");
  finding.advice =
      "call destroy_process_group() on every rank before it ends; without a group it ends all of them";
  finding.on_backend = traits_of(evidence.backend).texts.leak;
}

void word_never_served(Finding& finding) {
  const Place& place = *finding.at;
  finding.headline = fmt::format("no rank sets {}, which {} for", keys_phrase(place.call.key),
                                 with_verb(place.waiting, "waits", "wait"));
  finding.cause =
      place.missing.empty()
          ? fmt::format("every rank waits in {}, and no rank is left to set the key", place.call.op)
          : fmt::format("{} ended without setting it", ranks_phrase(place.missing));
  finding.advice =
      "let one rank set the key before any rank waits for it; check its spelling, its prefix, and which rank "
      "is meant to be the one";
  finding.on_backend = store_hang_on_backend();
}

void word_deleted_key(const std::string& key, Finding& finding) {
  const Place& place = *finding.at;
  finding.headline = fmt::format("{} deleted {}, which {} for", ranks_phrase(finding.culprits),
                                 keys_phrase(key), with_verb(place.waiting, "waits", "wait"));
  finding.cause = "the key was set, and was deleted before all ranks had read it; nobody set it again";
  finding.advice =
      "delete a key only after a barrier that follows the last read of it, or give each round a key of its "
      "own";
  finding.on_backend = store_hang_on_backend();
}

namespace {

bool all_wait_in(const Evidence& evidence, const RankSet& ranks, Channel channel) {
  return std::ranges::all_of(ranks.to_vector(), [&](Rank rank) {
    const RankStatus& status = evidence.status_of(rank);
    return status.waits() && status.channel == channel;
  });
}

}  // namespace

void word_group_cycle(const Evidence& evidence, const Place& place, Finding& finding) {
  const bool needs_all = place.call.op == to_string(OpKind::new_group) && evidence.new_group_waits_for_all;
  const bool makes_communicator = place.call.op == to_string(OpKind::batch_isend_irecv);
  finding.cause = fmt::format("every {} has to make {}, and {} without it",
                              needs_all ? "rank of the job, in the new group or not," : "member",
                              makes_communicator ? fmt::format("the first call on {}", place.call.group)
                                                 : fmt::format("the {}", place.call.op),
                              with_verb(place.missing, makes_communicator ? "waits elsewhere" : "continues",
                                        makes_communicator ? "wait elsewhere" : "continue"));
  if (place.call.op == to_string(OpKind::new_group) &&
      all_wait_in(evidence, place.missing, Channel::new_group)) {
    finding.cause = fmt::format(
        "a group's name is the number of the call, and {} at another number: an earlier call was not made by "
        "all",
        with_verb(place.missing, "is", "are"));
  }
  finding.advice = group_call_advice(evidence, place.call.op);
  finding.on_backend = host_hang_on_backend(evidence, place.call.op);
}

void word_store_cycle(const RankSet& everyone, Finding& finding) {
  finding.headline =
      fmt::format("{} wait for each other in a cycle, through the store", ranks_phrase(everyone));
  finding.cause =
      "some ranks wait for a key of the store, while every rank that could set it waits for them in another "
      "call";
  finding.advice = "set the key before the call that needs the others, or wait for it after that call";
}

void word_no_communicator(const Evidence& evidence, const Place& place, const RankSet& missing,
                          Finding& finding) {
  finding.headline =
      fmt::format("{} never made {} first call on {} ({} of {} ranks wait)", ranks_phrase(missing),
                  is_plural(missing) ? "their" : "its", place.call.group, place.waiting.size(),
                  place.waiting.size() + place.missing.size());
  finding.cause = fmt::format(
      "the batch_isend_irecv{} is the first call on {}, whose communicator is created by all members, also "
      "by those that it has no message for",
      origin_of(place.call), place.call.group);
  finding.advice = group_call_advice(evidence, place.call.op);
}

const char* group_call_advice(const Evidence& evidence, const std::string& op) {
  if (op == to_string(OpKind::new_group) && !evidence.new_group_waits_for_all) {
    return "call new_group on every member, with the same ranks; and as often on the other ranks, because a "
           "group's name is the number of the call";
  }
  if (op == to_string(OpKind::new_group)) {
    return "call new_group on every rank of the world, members or not, with the same ranks and in the same "
           "order";
  }
  if (op == to_string(OpKind::split_group)) {
    return "call split_group on every member of the parent, including those in none of the new groups";
  }
  if (op == to_string(OpKind::batch_isend_irecv)) {
    return "let every member make its first call on the group together: a barrier or an all_reduce when the "
           "group is made; or give init_process_group a device_id, which makes communicators at once";
  }
  return "call destroy_process_group on every member of the group, before any of them ends";
}

bool is_host_call(const std::string& op) {
  const std::optional<OpKind> kind = parse_op_kind(op);
  return kind && (is_about_groups(*kind) || is_about_store(*kind));
}

std::string store_hang_on_backend() {
  return "waits until the store's timeout (30 min by default) and raises \"Socket Timeout\"; nothing says "
         "who should have set the key";
}

void word_timeout_in_store(const RankSet& gave_up, Finding& finding) {
  const Place& place = *finding.at;
  finding.headline = fmt::format("{} waited in vain for a key of the store, and {} for {} in {}",
                                 ranks_phrase(gave_up), with_verb(place.waiting, "waits", "wait"),
                                 is_plural(gave_up) ? "them" : "it", call_phrase(place.call));
  finding.cause = "no rank set the key in time: the rank that sets it is elsewhere, or sets another key";
  finding.advice =
      "let every rank that the key depends on get there, or none; check the key's spelling and its prefix";
  finding.on_backend =
      "the store's timeout ends the ranks that wait for the key; the log does not say who should "
      "have set it";
}

void word_key_owners(const Evidence& evidence, const std::vector<std::string>& keys, const RankSet& waiting,
                     Finding& finding) {
  const auto all_are = [&evidence](const RankSet& ranks, std::initializer_list<RankStatus::State> states) {
    return std::ranges::all_of(ranks.to_vector(), [&](Rank rank) {
      return std::ranges::find(states, evidence.status_of(rank).state) != states.end();
    });
  };
  using State = RankStatus::State;
  const RankSet& owners = finding.culprits;
  const bool set_before =
      std::ranges::any_of(keys, [&](const std::string& key) { return evidence.key_setters->contains(key); });
  const std::string who = all_are(waiting, {State::raised, State::crashed})
                              ? ranks_phrase(waiting) + " waited for in vain"
                              : with_verb(waiting, "waits", "wait") + " for";
  finding.headline =
      fmt::format("{} did not set {}{}, which {}", ranks_phrase(owners),
                  keys_phrase(fmt::format("{}", fmt::join(keys, ", "))), set_before ? " again" : "", who);
  finding.cause = fmt::format("other ranks have each set such a key with their own number; {} without that",
                              all_are(owners, {State::finished}) ? ranks_phrase(owners) + " ended"
                                                                 : with_verb(owners, "goes on", "go on"));
  finding.advice =
      "let every rank set its key, on every path, before it goes on; or wait only for the keys of the ranks "
      "that set "
      "one";
}

std::string communicator_hang_on_backend() {
  return "the waiting ranks block inside ncclCommInitRank, where no watchdog covers them; where rank 0 of "
         "the group is missing, they wait for its ncclUniqueId until the store's timeout and raise "
         "\"store->get('0') got error\"";
}

std::string host_hang_on_backend(const Evidence& evidence, const std::string& op) {
  if (op == to_string(OpKind::new_group)) {
    if (traits_of(evidence.backend).exchanges_addresses) {
      return std::string(evidence.torch->gloo_new_group_hang);
    }
    if (evidence.torch->new_group_waits_for_all) {
      return "the waiting ranks poll the store until the timeout (30 min by default) and raise \"Timed out "
             "initializing process group in store based barrier\"; the log does not say which rank is "
             "missing";
    }
  }
  if (op == to_string(OpKind::batch_isend_irecv)) {
    return communicator_hang_on_backend();
  }
  const std::optional<OpKind> kind = parse_op_kind(op);
  if (kind && is_about_store(*kind)) {
    return store_hang_on_backend();
  }
  return fmt::format("{} waits inside NCCL for all members; no watchdog covers it", op);
}

}  // namespace rollcall::check
