// Changes that would let the calls continue in which ranks hang.

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "sim/repair/proposals.h"

namespace rollcall::check {
namespace {

constexpr std::size_t edits_max = 100'000;  // a change of more calls is not the smallest

// The index of a report's call in a rank's list.
std::optional<std::size_t> index_of(const CallList& list, const Call& call) {
  const auto kind = parse_op_kind(call.op);
  for (std::size_t i = 0; kind && i < list.calls.size(); ++i) {
    const ProgramCall& own = list.program->calls[i];
    if (own.group == call.group && own.seq == call.seq && count_of(own.kind) == count_of(*kind) &&
        is_about_groups(own.kind) == is_about_groups(*kind)) {
      return i;
    }
  }
  return std::nullopt;
}

// The index at which `rank` receives what `from` sends with its call number `at`: both are preceded by equally many.
std::optional<std::size_t> receive_of(const CallLists& lists, Rank from, std::size_t at, Rank rank) {
  const CallList& sender = lists.of(from);
  const CallList& receiver = lists.of(rank);
  const ProgramCall& sent = sender.program->calls[at];
  const auto is_one = [&](const CallList& list, std::size_t i, OpKind kind, Rank peer) {
    const ProgramCall& call = list.program->calls[i];
    return call.kind == kind && call.peer == peer && call.tag == sent.tag &&
           list.calls[i].group == sender.calls[at].group;
  };
  std::size_t before = 0;
  for (std::size_t i = 0; i < at; ++i) {
    before += is_one(sender, i, OpKind::send, rank) ? 1 : 0;
  }
  for (std::size_t i = 0; i < receiver.calls.size(); ++i) {
    if (is_one(receiver, i, OpKind::recv, from) && before-- == 0) {
      return i;
    }
  }
  return std::nullopt;
}

// The index at which `rank` makes the call of its variant. Messages have the number of the send.
std::optional<std::size_t> index_of_variant(const CallLists& lists, Rank rank, const Call& call) {
  if (call.op != "recv") {
    return index_of(lists.of(rank), call);
  }
  Call send = call;
  send.op = "send";
  const auto sent = index_of(lists.of(call.peer), send);
  return sent ? receive_of(lists, call.peer, *sent, rank) : std::nullopt;
}

// Where a rank is stuck.
struct StuckAt {
  std::size_t at = 0;  // in its list
  std::size_t place = 0;
};

class HangProposals {
 public:
  HangProposals(const CallLists& lists, const Hang& hang) : lists_(lists), hang_(hang) {
    for (std::size_t i = 0; i < hang.places.size(); ++i) {
      for (const auto& [rank, at] : hang.places[i].at) {
        stuck_[rank] = {at, i};
      }
    }
  }

  std::vector<Proposal> proposals() {
    for (std::size_t i = 0; i < hang_.places.size(); ++i) {
      drop_in(i);
      const auto* model = model_of(i);
      if (model != nullptr && hang_.places[i].missing.size() <= ranks_max) {
        const std::vector<Rank> missing = hang_.places[i].missing.to_vector();
        call_in(missing, *model);
        call_that_instead(missing, *model);
        call_earlier(missing, *model);
      }
    }
    agree();
    return std::move(found_);
  }

 private:
  static constexpr std::size_t ranks_max = 64;
  using Stuck = std::pair<const Rank, StuckAt>;

  const ListedCall& listed(Rank rank, std::size_t at) const { return lists_.of(rank).calls[at]; }
  const ProgramCall& program_call_of(Rank rank, std::size_t at) const {
    return lists_.of(rank).program->calls[at];
  }

  // An edit of one call, in all places of the rank that are like this one: a mistake in one step is often in all of
  // them.
  CallEdits everywhere(const CallEdit& edit) const {
    const std::vector<ListedCall>& calls = lists_.of(edit.rank).calls;
    const auto place = [&](std::int64_t at) {
      return at < 0 || at >= static_cast<std::int64_t>(calls.size())
                 ? Symbol(-1)
                 : calls[static_cast<std::size_t>(at)].place;
    };
    CallEdits edits;
    for (std::int64_t at = 0; at <= static_cast<std::int64_t>(calls.size()); ++at) {
      const bool is_before = edit.dropped == 1 || place(at - 1) == place(edit.at - 1);
      if (place(at) == place(edit.at) && is_before) {
        CallEdit other = edit;
        other.at = at;
        edits.push_back(std::move(other));
      }
    }
    return edits;
  }

  // True if a rank that is not edited makes calls like one that is left out: then they belong to the program.
  bool others_make_too(const CallEdits& edits) const {
    const auto is_edited = [&edits](Rank rank) {
      return std::ranges::find(edits, rank, &CallEdit::rank) != edits.end();
    };
    return std::ranges::any_of(edits, [&](const CallEdit& edit) {
      return edit.dropped > static_cast<std::int64_t>(edit.inserted.size()) &&
             std::ranges::any_of(lists_.classes(), [&](const CallClass& others) {
               const std::vector<ListedCall>& calls = lists_.of(others.front()).calls;
               const Symbol place = listed(edit.rank, static_cast<std::size_t>(edit.at)).place;
               return !std::ranges::all_of(others, is_edited) &&
                      std::ranges::find(calls, place, &ListedCall::place) != calls.end();
             });
    });
  }

  void propose(const CallEdits& edits) {
    propose_one(edits);
    if (others_make_too(edits)) {
      return;
    }
    CallEdits all;
    for (const CallEdit& edit : edits) {
      CallEdits own = everywhere(edit);
      std::ranges::move(own, std::back_inserter(all));
      if (all.size() > edits_max) {
        return;
      }
    }
    if (all.size() > edits.size()) {
      propose_one(std::move(all));
    }
  }

  void propose_one(CallEdits edits) {
    if (edits.empty()) {
      return;
    }
    sort_edits(edits);
    Proposal proposal;
    for (const CallEdit& edit : edits) {
      if (proposal.ranks.empty() || proposal.ranks.back() != edit.rank) {
        proposal.ranks.push_back(edit.rank);
      }
    }
    proposal.edits = std::move(edits);
    proposal.kinds = 1;
    found_.push_back(std::move(proposal));
  }

  // No other rank makes the call, so it is left out; or, if it is a collective of few ranks, all that follow as well:
  // one more iteration, which asynchronous calls began.
  void drop_in(std::size_t place) {
    CallEdits edits;
    for (const auto& [rank, stuck] : stuck_) {
      if (stuck.place == place && !listed(rank, stuck.at).is_fixed) {
        edits.push_back({rank, static_cast<std::int64_t>(stuck.at), 1, {}});
      }
    }
    propose(edits);
    const bool is_only_place = hang_.places.size() == 1;  // in a cycle, every rank could end it like that
    const bool has_message = std::ranges::any_of(edits, [this](const CallEdit& edit) {
      return is_point_to_point(program_call_of(edit.rank, static_cast<std::size_t>(edit.at)).kind);
    });
    if (is_only_place && !has_message &&
        edits.size() <= static_cast<std::size_t>(hang_.places[place].missing.size())) {
      propose_one(with_all_after(std::move(edits)));
    }
  }

  // The edits leave out all calls that follow theirs, too, as far as calls can be edited.
  CallEdits with_all_after(CallEdits edits) const {
    for (CallEdit& edit : edits) {
      const std::vector<ListedCall>& calls = lists_.of(edit.rank).calls;
      const auto begin = calls.begin() + edit.at;
      edit.dropped = std::ranges::find_if(begin, calls.end(), &ListedCall::is_fixed) - begin;
    }
    return edits;
  }

  // Call number `at` of `from`, as a call of `rank`: the other end of it, or the same call.
  ProgramCall counterpart(Rank from, std::size_t at, Rank rank) const {
    const ListedCall& call = listed(from, at);
    ProgramCall own = lists_.as_call_of(rank, program_call_of(from, at), call.group,
                                        is_point_to_point(program_call_of(from, at).kind) ? from : -1);
    if (is_point_to_point(own.kind)) {
      own.kind = own.kind == OpKind::send ? OpKind::recv : OpKind::send;
      place_as_before(rank, own);
    }
    return own;
  }

  // The other end of a message is in another place of the program: where the rank made such a call before, with this
  // peer or another one, or nowhere.
  void place_as_before(Rank rank, ProgramCall& message) const {
    const std::vector<ProgramCall>& calls = lists_.of(rank).program->calls;
    const auto last_one = [&](bool with_any_peer) {
      return std::find_if(calls.rbegin(), calls.rend(), [&](const ProgramCall& call) {
        return call.kind == message.kind && call.numel == message.numel && call.dtype == message.dtype &&
               (with_any_peer || call.peer == message.peer);
      });
    };
    const auto own = last_one(false);
    const auto before = own == calls.rend() ? last_one(true) : own;
    message.label = before == calls.rend() ? "" : before->label;
    message.site = before == calls.rend() ? "" : before->site;
  }

  // Where a rank is stuck or, if it is not, where it could have continued: before it destroyed its groups.
  std::size_t place_in_list(Rank rank) const {
    if (const auto own = stuck_.find(rank); own != stuck_.end()) {
      return own->second.at;
    }
    std::size_t end = lists_.of(rank).calls.size();
    while (end > 0 && program_call_of(rank, end - 1).kind == OpKind::destroy_process_group) {
      --end;
    }
    return end;
  }

  // A rank that is stuck in the place, in a call that others can make as well; null if there is none.
  const Stuck* model_of(std::size_t place) const {
    const auto found =
        std::ranges::find_if(stuck_, [&](const auto& stuck) { return stuck.second.place == place; });
    return found == stuck_.end() || listed(found->first, found->second.at).is_fixed ? nullptr : &*found;
  }

  // The missing ranks make the call before the one they are in.
  void call_in(const std::vector<Rank>& missing, const Stuck& model) {
    CallEdits edits;
    for (const Rank rank : missing) {
      const auto own = stuck_.find(rank);
      if (own != stuck_.end() &&
          is_theirs_otherwise(lists_, rank, own->second.at, model.first, model.second.at)) {
        return;
      }
      edits.push_back({rank,
                       static_cast<std::int64_t>(place_in_list(rank)),
                       0,
                       {counterpart(model.first, model.second.at, rank)}});
    }
    propose(std::move(edits));
  }

  // A missing rank makes the call instead of the one it is in.
  void call_that_instead(const std::vector<Rank>& missing, const Stuck& model) {
    for (const Rank rank : missing) {
      const auto own = stuck_.find(rank);
      if (own != stuck_.end() && !listed(rank, own->second.at).is_fixed) {
        propose({{rank,
                  static_cast<std::int64_t>(own->second.at),
                  1,
                  {counterpart(model.first, model.second.at, rank)}}});
      }
    }
  }

  // The missing ranks make the call first that they now make only after the one they are in.
  void call_earlier(const std::vector<Rank>& missing, const Stuck& model) {
    const ListedCall& awaited = listed(model.first, model.second.at);
    CallEdits once;
    CallEdits always;
    for (const Rank rank : missing) {
      const std::vector<ListedCall>& calls = lists_.of(rank).calls;
      const auto own = stuck_.find(rank);
      if (own == stuck_.end() || calls[own->second.at].is_fixed) {
        return;
      }
      const std::size_t at = own->second.at;
      const auto later = std::find_if(
          calls.begin() + static_cast<std::ptrdiff_t>(at), calls.end(),
          [&](const ListedCall& call) { return call.shape == awaited.shape && call.group == awaited.group; });
      if (later == calls.end() || is_point_to_point(program_call_of(rank, at).kind)) {
        return;
      }
      const std::size_t distance = static_cast<std::size_t>(later - calls.begin()) - at;
      move_up(rank, at, distance, once);
      for (std::size_t i = 0; i + distance < calls.size() && always.size() <= edits_max; ++i) {
        if (calls[i].place == calls[at].place && calls[i + distance].place == later->place) {
          move_up(rank, i, distance, always);
          i += distance;
        }
      }
    }
    if (always.size() > once.size() && always.size() <= edits_max) {
      propose_one(std::move(always));
    }
    propose_one(std::move(once));
  }

  // The rank makes the call that is `distance` calls behind the one at `at` before that one.
  void move_up(Rank rank, std::size_t at, std::size_t distance, CallEdits& edits) const {
    const ProgramCall& moved = program_call_of(rank, at + distance);
    edits.push_back({rank,
                     static_cast<std::int64_t>(at),
                     0,
                     {lists_.as_call_of(rank, moved, listed(rank, at + distance).group, moved.peer)}});
    edits.push_back({rank, static_cast<std::int64_t>(at + distance), 1, {}});
  }

  // For ranks that met with different calls: one side makes the other's call instead of its own, or before it, or
  // leaves its own out.
  // More sides than a few cannot be made to agree by changing one of them, and their pairs are many.
  void agree() {
    constexpr std::size_t sides_max = 16;
    if (hang_.variants.size() > sides_max) {
      return;
    }
    for (const CallsAt& wrong : hang_.variants) {
      if (wrong.size() > ranks_max) {
        continue;
      }
      CallEdits left_out;
      for (const auto& [rank, at] : wrong) {
        left_out.push_back({rank, static_cast<std::int64_t>(at), 1, {}});
      }
      for (const CallsAt& right : hang_.variants) {
        if (&right == &wrong || right.empty() ||
            listed(right.begin()->first, right.begin()->second).is_fixed) {
          continue;
        }
        const auto& [model, its] = *right.begin();
        CallEdits instead;
        CallEdits before;
        bool may_be_before = true;
        for (const CallEdit& edit : left_out) {
          const ProgramCall& own = program_call_of(edit.rank, static_cast<std::size_t>(edit.at));
          ProgramCall call =
              lists_.as_call_of(edit.rank, program_call_of(model, its),
                                listed(edit.rank, static_cast<std::size_t>(edit.at)).group, own.peer);
          call.kind = is_point_to_point(call.kind) ? own.kind : call.kind;
          may_be_before =
              may_be_before &&
              !is_theirs_otherwise(lists_, edit.rank, static_cast<std::size_t>(edit.at), model, its);
          instead.push_back({edit.rank, edit.at, 1, {call}});
          before.push_back({edit.rank, edit.at, 0, {call}});
        }
        propose(std::move(instead));
        propose(may_be_before ? std::move(before) : CallEdits());
      }
      propose(std::move(left_out));
    }
  }

  const CallLists& lists_;
  const Hang& hang_;
  std::map<Rank, StuckAt> stuck_;
  std::vector<Proposal> found_;
};

// In a cycle, its calls hold the ranks. Where a rank is gone, the call that the report shows may be the victim of
// another one in which ranks wait: all of them are examined, the shown one first.
std::vector<Place> places_of(const Deadlock& deadlock) {
  if (!deadlock.cycle.empty()) {
    return deadlock.cycle;
  }
  std::vector<Place> places;
  if (deadlock.finding.at) {
    places.push_back(*deadlock.finding.at);
  }
  const auto is_shown = [&](const Place& place) {
    return deadlock.finding.at && place.call == deadlock.finding.at->call;
  };
  std::ranges::remove_copy_if(deadlock.blocked, std::back_inserter(places), is_shown);
  return places;
}

}  // namespace

Hang hang_of(const CallLists& lists, const Verdict& verdict) {
  std::vector<Place> places;
  Hang hang;
  if (const auto* deadlock = std::get_if<Deadlock>(&verdict)) {
    places = places_of(*deadlock);
  } else if (const auto* mismatch = std::get_if<Mismatch>(&verdict)) {
    for (const Variant& variant : mismatch->variants) {
      CallsAt& calls = hang.variants.emplace_back();
      for (const Rank rank : variant.ranks.to_vector()) {
        if (const auto at = index_of_variant(lists, rank, variant.call)) {
          calls[rank] = *at;
        }
      }
    }
    hang.is_of_one_statement = std::ranges::all_of(mismatch->variants, [&](const Variant& variant) {
      const Call& first = mismatch->variants.front().call;
      return !variant.call.site.empty() && variant.call.site == first.site &&
             variant.call.label == first.label && variant.call.op == first.op;
    });
  }
  for (const Place& place : places) {
    HangPlace& stuck = hang.places.emplace_back();
    stuck.missing = place.missing;
    for (const Rank rank : place.waiting.to_vector()) {
      if (const auto at = index_of(lists.of(rank), place.call)) {
        stuck.at[rank] = *at;
      }
    }
  }
  return hang;
}

bool is_theirs_otherwise(const CallLists& lists, Rank rank, std::size_t at, Rank other, std::size_t theirs) {
  const ListedCall& call = lists.of(rank).calls[at];
  const ListedCall& other_call = lists.of(other).calls[theirs];
  const OpKind kind = lists.of(rank).program->calls[at].kind;
  if (is_point_to_point(kind) || kind != lists.of(other).program->calls[theirs].kind ||
      call.group != other_call.group || call.shape == other_call.shape) {
    return false;
  }
  return std::ranges::all_of(lists.classes(), [&](const CallClass& each) {
    const std::vector<ListedCall>& calls = lists.of(each.front()).calls;
    const bool is_own = std::ranges::find(each, rank) != each.end();
    return std::ranges::count(calls, call.shape, &ListedCall::shape) == (is_own ? 1 : 0);
  });
}

std::vector<Proposal> where_it_hangs(const CallLists& lists, const Hang& hang) {
  return HangProposals(lists, hang).proposals();
}

}  // namespace rollcall::check
