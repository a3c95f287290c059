#pragma once

// Verdict: the outcome of a run, with the evidence. A variant, so that no case can be forgotten and no case carries
// another's fields.

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/time.h"
#include "sim/report/finding_kinds.h"
#include "sim/report/rank_set.h"

namespace rollcall {

// One call as a report shows it. Names are looked up already; nothing here refers to a run.
struct Call {
  std::string op;        // "all_reduce"
  std::string group;     // "world"
  std::int64_t seq = 0;  // from 0 per group
  std::int64_t numel = 0;
  std::string dtype;      // "float32"; empty for barrier
  std::string reduce_op;  // "SUM"; empty where there is none
  Rank root = -1;         // global; -1: none
  Rank peer = -1;         // send, recv: the other end, global; -1: none, or anyone
  std::int32_t tag = 0;   // send, recv
  std::string ranks{};    // calls that make groups: "0-1"
  std::string key{};      // calls on the store: "ready"
  std::string device;     // "cuda:0"
  std::string label;      // the scopes it was issued in: "counter.forward"; may be empty
  std::string site;       // "uneven_inputs.json:12:9"; may be empty

  friend bool operator==(const Call&, const Call&) = default;
};

// "all_reduce #5 on world", or "store_get(ready)": how every text names a call.
std::string call_phrase(const Call& call);

// The label to show next to a site. Labels of recorded scripts end with a line of Python, which is left out when it is
// the site's: "fsdp.unshard (model.py:125)" next to "FSDP2/model.py:125" becomes "fsdp.unshard", and "train.py:9" next
// to itself becomes empty. A label may have several lines, of which the site is one: "train.py:9/12".
std::string_view label_beside_site(std::string_view label, std::string_view site);

// The place where the ranks diverged: one slot of one group, with the ranks that reached it and those that did not.
struct Place {
  Call call;
  RankSet waiting;
  RankSet missing;
};

// The variants of one slot: which ranks made which call.
struct Variant {
  RankSet ranks;
  Call call;
};

// The earliest slot that paired calls from different places. Every real backend lets them pass when
// op, size and dtype agree; whatever fails later fails because of this.
struct Divergence {
  std::string group;
  std::int64_t seq = 0;
  std::vector<Variant> variants;
};

// A tensor of some ranks that holds the wrong value, or was used too early.
struct TensorPlace {
  RankSet ranks;
  std::string tensor;  // the program's name for it
  std::string got;     // a failed check: values as text
  std::string want;
  std::string handle;  // used too early: the name of the unfinished call; may be empty
  std::string site;    // of the statement that detected it
  Time time = -1;      // of the detection; -1: unknown
  // Used too early: the stream that waited for the call, and the one that used the tensor; empty if none waited.
  std::string ordered{};
  std::string unordered{};
  std::string by{};  // used too early: the operation that did so; empty: another statement
};

// Two ranks of a call with split sizes that disagree about what one sends to the other.
struct SplitPair {
  Rank sender = 0;
  Rank receiver = 0;
  std::int64_t sent = 0;
  std::int64_t expected = 0;
};

// A change to the calls of some ranks: "call all_reduce #3 on dp0 in gradients", "leave out ...".
struct RepairStep {
  RankSet ranks;
  std::string text;
  std::int64_t times = 1;  // in this many places of each rank's program
};

// The smallest change found with which the job runs to its end; the changed job was run. No steps: none was found.
struct Repair {
  enum class Search : std::uint8_t {
    complete,   // all considered changes were run, or all that are as likely as the one found
    cut_short,  // more could have been run
    too_large,  // the job is too large: none was run
  };

  std::vector<RepairStep> steps{};
  std::int64_t alternatives = 0;  // changes of other ranks that are as small and as likely, and also help
  std::int64_t tried = 0;         // changes that were run
  Search search = Search::complete;
  bool is_partial = false;  // the programs are known only up to where the ranks stopped
};

std::string_view to_string(Repair::Search search);

// What every unhappy verdict has in common.
struct Finding {
  FindingKind kind = FindingKind::ok;  // more specific than the verdict
  RankSet culprits;                    // ranks whose program deviates; on a tie all of them
  bool tie = false;
  std::vector<Rank>
      suspects{};           // the culprits, likeliest first, where one is likelier than another; or empty
  std::string suspicion{};  // why the first of them is: one sentence
  std::optional<Place> at;
  std::optional<Divergence> first_divergence;  // only when earlier than `at`
  std::string headline;                        // who, what, where: one sentence without a period
  std::string cause;                           // one sentence
  std::string advice;                          // one sentence
  std::optional<Repair> repair{};              // of deadlocks and mismatches, where one was found
  std::string on_backend;                      // what the real backend would show; may be empty
  std::vector<std::string> chain;              // which ranks wait for which, one step a line
};

// How many of the tried schedules had this outcome.
struct Outcome {
  std::string verdict;  // "ok", "deadlock", ...
  FindingKind kind = FindingKind::ok;
  std::int64_t count = 0;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

struct Completed {};
struct Deadlock {
  Finding finding;
  std::vector<Place> cycle{};  // the calls in which ranks wait for each other; empty: a rank is gone
  std::vector<Place>
      blocked{};  // calls in which ranks wait, in a cycle or not; the first blocked_max of them
  static constexpr std::size_t blocked_max = 8;
};
struct Mismatch {
  Finding finding;
  std::vector<Variant> variants;    // majority first
  std::vector<SplitPair> splits{};  // the pairs that disagree, where sizes themselves may differ; or empty
};
struct DeviceMismatch {
  Finding finding;
  std::vector<Variant> variants;
};
struct WrongResult {
  Finding finding;
  std::vector<Variant> variants;      // the calls that met without belonging together, majority first
  std::vector<TensorPlace> values{};  // the checks that failed
};
// Timing decides the outcome of the run.
struct Race {
  Finding finding;
  std::vector<Variant> variants{};     // of the schedule that goes wrong; may be empty
  std::vector<TensorPlace> touched{};  // used before the call that works on it was waited for
  std::vector<Outcome> outcomes{};     // of the schedules that were tried; empty: only one was
};
struct ResourceLeak {
  Finding finding;
  std::vector<Variant> calls{};  // that never complete, and that no rank waits for
};
struct RankFailed {
  Finding finding;
  std::string exception;  // "ValueError: bad sample", of the first culprit
};
struct LimitReached {
  Finding finding;  // its kind says which limit
  std::int64_t value = 0;
};

using Verdict = std::variant<Completed, Deadlock, Mismatch, DeviceMismatch, WrongResult, Race, ResourceLeak,
                             RankFailed, LimitReached>;

// "ok", "deadlock", ...: the words of the report format.
std::string_view verdict_word(const Verdict& verdict);
// The common part, or null for Completed.
const Finding* finding_of(const Verdict& verdict);
Finding* finding_of(Verdict& verdict);
FindingKind kind_of(const Verdict& verdict);
// "deadlock (missing_participant)"; the verdict alone where nothing is wrong.
std::string verdict_phrase(std::string_view verdict, FindingKind kind);

}  // namespace rollcall
